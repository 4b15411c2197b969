package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// wireBuffer is how many bytes are passed on at a time.
const wireBuffer = 32 << 10

// dialTimeout bounds how long the server may take to accept a connection.
const dialTimeout = 10 * time.Second

// Wire passes the bytes of connections on between clients and one server, and
// damages them on demand. It sees no requests, so that TLS passes through. It is
// safe for concurrent use.
type Wire struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	refuse bool
	// hole is closed when bytes pass again; nil while they do.
	hole  chan struct{}
	conns map[*wireConn]struct{}
	// closed is closed when the wire is.
	closed chan struct{}
}

// wireConn is a connection through the wire.
type wireConn struct {
	client, server net.Conn
	// dead is closed when nothing passes through it any more, for ever.
	dead chan struct{}
	once sync.Once
}

// NewWire starts a wire on loopback to a server, given as host:port.
func NewWire(server string) (*Wire, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the clients of %q: %w", server, err)
	}
	w := &Wire{listener: listener, server: server, conns: map[*wireConn]struct{}{}, closed: make(chan struct{})}
	w.running.Go(w.accept)
	return w, nil
}

// Addr returns where the wire listens, as host:port.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Close ends the wire and all connections through it, and returns when nothing of it runs any more.
func (w *Wire) Close() error {
	close(w.closed)
	err := w.listener.Close()
	w.Reset()
	w.running.Wait()
	return err
}

// Delay makes all bytes from now on take so much longer.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Refuse makes new connections break as soon as they are made, or, with false, no more.
func (w *Wire) Refuse(refuse bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = refuse
}

// BlackHole makes all bytes wait, in both directions and on new connections
// too, until Mend: nothing comes, and no error.
func (w *Wire) BlackHole() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hole == nil {
		w.hole = make(chan struct{})
	}
}

// Mend ends what BlackHole began. What has waited is passed on.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hole != nil {
		close(w.hole)
		w.hole = nil
	}
}

// Reset breaks all connections, so that both ends notice.
func (w *Wire) Reset() {
	for _, c := range w.open() {
		c.end()
	}
}

// HalfOpen makes all connections that are open dead for the server, and for the
// client as they were, but that nothing comes any more and nothing arrives. New connections are not touched.
func (w *Wire) HalfOpen() {
	for _, c := range w.open() {
		c.once.Do(func() { close(c.dead) })
		_ = c.server.Close()
	}
}

// Connections returns how many connections pass bytes on.
func (w *Wire) Connections() int {
	n := 0
	for _, c := range w.open() {
		if !closed(c.dead) {
			n++
		}
	}
	return n
}

func (w *Wire) open() []*wireConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*wireConn, 0, len(w.conns))
	for c := range w.conns {
		all = append(all, c)
	}
	return all
}

// accept takes connections until the wire is closed.
func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		refuse := w.refuse
		w.mu.Unlock()
		if refuse || closed(w.closed) {
			abort(client)
			continue
		}
		w.running.Go(func() { w.connect(client) })
	}
}

// abort ends a connection by a reset.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// connect passes the bytes of a connection on until it ends.
func (w *Wire) connect(client net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", w.server)
	if err != nil {
		abort(client)
		return
	}
	c := &wireConn{client: client, server: server, dead: make(chan struct{})}
	w.mu.Lock()
	w.conns[c] = struct{}{}
	w.mu.Unlock()
	if closed(w.closed) {
		c.end()
	}
	w.running.Go(func() { w.pass(c, server, client) })
	w.pass(c, client, server)
	w.mu.Lock()
	delete(w.conns, c)
	w.mu.Unlock()
}

// pass passes bytes on in one direction until there are no more. Of a connection that is dead to the server, it swallows those of the client.
func (w *Wire) pass(c *wireConn, from, to net.Conn) {
	buffer := make([]byte, wireBuffer)
	for {
		n, err := from.Read(buffer)
		if closed(c.dead) {
			if from == c.server {
				return
			}
			if err != nil {
				c.end()
				return
			}
			continue
		}
		if n > 0 && (!w.wait(c) || !written(to, buffer[:n])) || err != nil {
			if !closed(c.dead) || errors.Is(err, net.ErrClosed) {
				c.end()
			}
			return
		}
	}
}

func written(to net.Conn, data []byte) bool {
	_, err := to.Write(data)
	return err == nil
}

// wait waits for as long as bytes have to, and reports whether they may pass then.
func (w *Wire) wait(c *wireConn) bool {
	w.mu.Lock()
	delay, hole := w.delay, w.hole
	w.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.dead:
			return false
		}
	}
	if hole == nil {
		return true
	}
	select {
	case <-hole:
		return true
	case <-c.dead:
		return false
	}
}

// end ends a connection for both.
func (c *wireConn) end() {
	c.once.Do(func() { close(c.dead) })
	abort(c.client)
	abort(c.server)
}
