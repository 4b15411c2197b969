package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// wireBuffer is the maximum number of bytes that are forwarded at a time.
const wireBuffer = 32 << 10

// dialTimeout is the maximum time in which the server must accept a connection.
const dialTimeout = 10 * time.Second

// Wire forwards the bytes of connections between clients and one server, and disturbs the connections on demand. It does not
// interpret the bytes, so that TLS passes through. It is safe for concurrent use.
type Wire struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	refuse bool
	// hole is closed when bytes are forwarded again; nil while bytes are forwarded.
	hole  chan struct{}
	conns map[*wireConn]struct{}
	// closed is closed by Close.
	closed chan struct{}
}

// wireConn is a connection through the wire.
type wireConn struct {
	client, server net.Conn
	// dead is closed when the connection has stopped forwarding bytes for ever.
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

// Addr returns the address at which the wire listens, as host:port.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Close closes the wire and all connections through it, and waits until its goroutines have ended.
func (w *Wire) Close() error {
	close(w.closed)
	err := w.listener.Close()
	w.Reset()
	w.running.Wait()
	return err
}

// Delay sets how long all bytes are delayed from now on.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Refuse sets whether new connections are reset when they are accepted.
func (w *Wire) Refuse(refuse bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = refuse
}

// BlackHole holds back all bytes in both directions, also those of new connections, until Mend. The ends of a connection receive
// neither bytes nor an error.
func (w *Wire) BlackHole() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hole == nil {
		w.hole = make(chan struct{})
	}
}

// Mend ends the effect of BlackHole. The wire forwards the bytes that it has held back.
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

// HalfOpen closes all open connections to the server. To the client they remain open, but it receives nothing, and its bytes are
// discarded. New connections are not affected.
func (w *Wire) HalfOpen() {
	for _, c := range w.open() {
		c.once.Do(func() { close(c.dead) })
		_ = c.server.Close()
	}
}

// Connections returns the number of connections that forward bytes.
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

// accept accepts connections until the wire is closed.
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

// abort ends a connection with a TCP reset.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// connect forwards the bytes of a connection until it ends.
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

// pass forwards bytes in one direction until there are no more. If the connection is dead, it discards the bytes of the client.
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

// wait waits for the delay and the end of the black hole, and reports whether the bytes may be forwarded then.
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

// end ends a connection on both sides.
func (c *wireConn) end() {
	c.once.Do(func() { close(c.dead) })
	abort(c.client)
	abort(c.server)
}
