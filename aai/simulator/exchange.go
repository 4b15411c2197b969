package simulator

import (
	"bytes"
	"compress/gzip"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"
)

// exchange is a request on the wire and the fault that hits it.
type exchange struct {
	*Simulator
	hit

	w         http.ResponseWriter
	r         *http.Request
	body      []byte
	arrival   time.Time
	restarted <-chan struct{} // closed when the server restarts
}

// serve answers the request, or ends its connection where the fault says so.
func (x *exchange) serve() {
	q := newRequest(x.r, x.base, x.body)
	q.forceXML, q.delay, q.stale = x.XML, x.Delay, x.Stale
	if !x.wait() || x.Drop == DropBeforeCommit {
		x.sever()
	}
	rep, instead := x.instead(q)
	if !instead {
		rep = x.handle(q)
	}
	x.spoil(&rep)
	if x.Drop == DropAfterCommit {
		x.sever()
	}
	rep.header.Set("X-AAI-TXID", "sim-"+strconv.FormatInt(x.arrival.UnixNano(), 36))
	x.deliver(rep)
}

// wait delays the request and reports whether its client is still there.
func (x *exchange) wait() bool {
	delay := x.Delay
	if x.r.Method == http.MethodGet {
		delay = min(delay, x.readTimeout)
	}
	return x.pause(delay)
}

// pause waits and reports whether the connection is still to be used.
func (x *exchange) pause(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
	case <-x.restarted:
	}
	return false
}

// instead is what the rule answers in place of A&AI; false when A&AI is to answer itself.
func (x *exchange) instead(q *request) (reply, bool) {
	switch {
	case x.Status != 0:
		rep := statusPage(x.Status)
		if x.Location != "" {
			rep.header.Set("Location", x.Location)
		}
		return rep, true
	case x.Code == "":
		return reply{}, false
	}
	_ = x.checkVersion(q) // for the path and the version that the error quotes; a fault asks for no valid request
	err := fail(errorCode(x.Code), "by a fault rule")
	if x.index >= 0 {
		return bulkFailure(q, x.index, err.at(string(x.failed.verb), x.failed.path)), true
	}
	return q.refuse(err.at(q.method, q.path)), true
}

// spoil does to an answer what the rule says.
func (x *exchange) spoil(rep *reply) {
	if x.RetryAfter != "" {
		rep.header.Set("Retry-After", x.RetryAfter)
	}
	if x.Empty {
		rep.body = nil
	}
	if x.Gzip && len(rep.body) > 0 {
		rep.header.Set("Content-Encoding", "gzip")
		rep.body = zipped(rep.body)
	}
	if x.Truncate {
		rep.body = rep.body[:len(rep.body)/2]
	}
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a Buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// deliver sends the answer, whole or not.
func (x *exchange) deliver(rep reply) {
	sent, announced := rep.body, len(rep.body)
	switch {
	case x.Drop == DropMidBody:
		sent, announced = sent[:len(sent)/2], max(announced, 1)
	case x.WrongLength:
		announced = max(2*announced, 1)
	}
	broken := announced > len(sent)
	if broken && (x.r.Method == http.MethodHead || rep.status == http.StatusNoContent || rep.status == http.StatusNotModified) {
		x.sever()
	}
	x.journal.add(record(x.r, x.body, x.arrival, rep.status))
	maps.Copy(x.w.Header(), rep.header)
	if broken {
		x.w.Header().Set("Content-Length", strconv.Itoa(announced))
	}
	x.w.WriteHeader(rep.status)
	complete := x.write(sent)
	if broken {
		x.flush()
	}
	if broken || !complete {
		x.end()
	}
}

// write sends bytes, slowly if the rule says so, and reports whether the connection is still to be used. The error of a
// write is a client that has gone, and needs no answer.
func (x *exchange) write(body []byte) bool {
	if x.Drip == 0 {
		_, _ = x.w.Write(body)
		return true
	}
	for i := range body {
		if !x.pause(x.Drip) {
			return false
		}
		_, _ = x.w.Write(body[i : i+1])
		x.flush()
	}
	return true
}

// flush sends what is written so far; where that is impossible it goes later.
func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// sever records a request that gets no answer, as status 0, and ends its connection.
func (x *exchange) sever() {
	x.journal.add(record(x.r, x.body, x.arrival, 0))
	x.end()
}

// end ends the connection in the manner of the rule. It does not return.
func (x *exchange) end() {
	switch x.Manner {
	case MannerReset:
		x.reset()
	case MannerHang:
		x.hang()
	case MannerClose:
	}
	panic(http.ErrAbortHandler)
}

// reset closes the TCP connection with RST, if there is one.
func (x *exchange) reset() {
	connection, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	inner := connection
	if wrapped, ok := inner.(interface{ NetConn() net.Conn }); ok { // of TLS, which would say goodbye
		inner = wrapped.NetConn()
	}
	if tcp, ok := inner.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // the worst is an orderly end
	}
	_ = inner.Close() // nobody is there to hear of an error
}

// hang waits until nobody wants the connection any more.
func (x *exchange) hang() {
	select {
	case <-x.r.Context().Done():
	case <-x.cleared:
	case <-x.restarted:
	}
}
