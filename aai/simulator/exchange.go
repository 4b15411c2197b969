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

// exchange is a request on the wire and the fault that hits it, if any.
type exchange struct {
	*Simulator

	fault     Fault
	w         http.ResponseWriter
	r         *http.Request
	body      []byte
	arrival   time.Time
	operation int // of a bulk request, which the fault is for
	cleared   <-chan struct{}
	restarted <-chan struct{}
}

// serve answers the request, or ends its connection where the fault says so.
func (x *exchange) serve() {
	q := newRequest(x.r, x.body)
	q.stale = x.fault.Stale
	if !x.pause(x.fault.Delay) || x.fault.Drop == DropBeforeCommit {
		x.dropConnection()
	}
	rep, instead := x.faultReply(q)
	if !instead {
		rep = x.handle(q)
	}
	x.alter(&rep)
	if x.fault.Drop == DropAfterCommit {
		x.dropConnection()
	}
	rep.header.Set("X-AAI-TXID", "sim-"+strconv.FormatInt(x.arrival.UnixNano(), 36))
	x.send(rep)
}

// pause waits, and reports whether the connection is still to be used.
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

// alter does to an answer what the rule says.
func (x *exchange) alter(rep *reply) {
	if x.fault.RetryAfter != "" {
		rep.header.Set("Retry-After", x.fault.RetryAfter)
	}
	if x.fault.XML {
		rep.toXML()
	}
	if x.fault.Empty {
		rep.body = nil
	}
	if x.fault.Gzip && len(rep.body) > 0 {
		rep.header.Set("Content-Encoding", "gzip")
		rep.body = zipped(rep.body)
	}
	if x.fault.Truncate {
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

// send sends the answer, whole or not.
func (x *exchange) send(rep reply) {
	sent, announced := rep.body, len(rep.body)
	switch {
	case x.fault.Drop == DropMidBody:
		sent, announced = sent[:len(sent)/2], max(announced, 1)
	case x.fault.WrongLength:
		announced = max(2*announced, 1)
	}
	broken := announced > len(sent)
	if broken && (x.r.Method == http.MethodHead || rep.status == http.StatusNoContent || rep.status == http.StatusNotModified) {
		x.dropConnection()
	}
	x.record(rep.status)
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
		x.closeConnection()
	}
}

// write sends bytes, slowly if the rule says so, and reports whether the connection is still to be used. An error of writing
// means that the client has gone, and needs no answer.
func (x *exchange) write(body []byte) bool {
	if x.fault.Drip == 0 {
		_, _ = x.w.Write(body)
		return true
	}
	for i := range body {
		if !x.pause(x.fault.Drip) {
			return false
		}
		_, _ = x.w.Write(body[i : i+1])
		x.flush()
	}
	return true
}

// flush sends what is written so far. Where that is impossible it is sent later.
func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// dropConnection records a request that gets no answer, with status 0, and ends its connection.
func (x *exchange) dropConnection() {
	x.record(0)
	x.closeConnection()
}

// closeConnection ends the connection in the manner of the rule. It does not return.
func (x *exchange) closeConnection() {
	switch x.fault.Manner {
	case MannerReset:
		x.reset()
	case MannerHang:
		select {
		case <-x.r.Context().Done():
		case <-x.cleared:
		case <-x.restarted:
		}
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
	if wrapped, ok := connection.(interface{ NetConn() net.Conn }); ok { // TLS, which would send an alert before it closes
		connection = wrapped.NetConn()
	}
	if tcp, ok := connection.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // at worst the connection ends in an orderly way
	}
	_ = connection.Close() // The client has gone: an error cannot be reported.
}
