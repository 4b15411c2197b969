package main

import (
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener that resets connections beyond a number that may be open at a time.
type limited struct {
	net.Listener

	limit int64
	open  atomic.Int64
}

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		if l.open.Add(1) <= l.limit {
			return &counted{TCPConn: tcp, release: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		_ = tcp.SetLinger(0) // the worst is an orderly end
		_ = tcp.Close()      // nobody is there to hear of an error
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	*net.TCPConn

	release func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.release()
	return c.TCPConn.Close()
}
