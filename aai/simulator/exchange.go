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

// exchange is a request and its answer on the wire, with the fault that hits it, if any.
type exchange struct {
	*Simulator

	fault      Fault
	w          http.ResponseWriter
	r          *http.Request
	body       []byte
	receivedAt time.Time
	operation  int // of a bulk request, which the fault is for
	cleared    <-chan struct{}
	restarted  <-chan struct{}
}

// serve answers the request, or ends its connection if the fault requires that.
func (x *exchange) serve() {
	q := newRequest(x.r, x.body)
	q.stale = x.fault.Stale
	if !x.wait(x.fault.Delay) || x.fault.Drop == DropBeforeCommit {
		x.dropConnection()
	}
	rep, replaced := x.faultReply(q)
	if !replaced {
		rep = x.handle(q)
	}
	x.alterReply(&rep)
	if x.fault.Drop == DropAfterCommit {
		x.dropConnection()
	}
	rep.header.Set("X-AAI-TXID", "sim-"+strconv.FormatInt(x.receivedAt.UnixNano(), 36))
	x.send(rep)
}

// wait waits, and reports whether the connection is still usable.
func (x *exchange) wait(d time.Duration) bool {
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

// alterReply applies the fault to an answer.
func (x *exchange) alterReply(rep *reply) {
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
		rep.body = gzipped(rep.body)
	}
	if x.fault.Truncate {
		rep.body = rep.body[:len(rep.body)/2]
	}
}

func gzipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a Buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// send sends the answer, or the part of it that the fault lets through.
func (x *exchange) send(rep reply) {
	sent, contentLength := rep.body, len(rep.body)
	switch {
	case x.fault.Drop == DropMidBody:
		sent, contentLength = sent[:len(sent)/2], max(contentLength, 1)
	case x.fault.WrongLength:
		contentLength = max(2*contentLength, 1)
	}
	broken := contentLength > len(sent)
	if broken && (x.r.Method == http.MethodHead || rep.status == http.StatusNoContent || rep.status == http.StatusNotModified) {
		x.dropConnection()
	}
	x.record(rep.status)
	maps.Copy(x.w.Header(), rep.header)
	if broken {
		x.w.Header().Set("Content-Length", strconv.Itoa(contentLength))
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

// write sends bytes, with the pauses of Fault.Drip, and reports whether the connection is still usable. It ignores write errors:
// they mean that the client has disconnected.
func (x *exchange) write(body []byte) bool {
	if x.fault.Drip == 0 {
		_, _ = x.w.Write(body)
		return true
	}
	for i := range body {
		if !x.wait(x.fault.Drip) {
			return false
		}
		_, _ = x.w.Write(body[i : i+1])
		x.flush()
	}
	return true
}

// flush sends the bytes written so far. If the ResponseWriter cannot flush, they are sent later.
func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// dropConnection records an unanswered request, with status 0, and ends its connection.
func (x *exchange) dropConnection() {
	x.record(0)
	x.closeConnection()
}

// closeConnection ends the connection in the manner of the fault. It does not return.
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
	_ = connection.Close() // There is no client to report an error to.
}
