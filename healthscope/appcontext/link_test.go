package appcontext_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
)

// link is a connection to etcd that can be broken.
type link struct {
	target   string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex // Guards target too.
	down  bool
	conns map[*pipe]bool
}

// pipe is a connection through a link.
type pipe struct {
	near, far net.Conn
	// frozen is locked while the pipe reads and delivers nothing.
	frozen sync.RWMutex
}

// newLink returns a link to etcd, and its URL.
func newLink(t testing.TB, endpoint string) (l *link, url string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	l = &link{target: address(endpoint), listener: listener, conns: map[*pipe]bool{}}
	l.wait.Go(func() { l.accept(t.Context()) })
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		l.wait.Wait()
	})
	return l, "http://" + listener.Addr().String()
}

func (l *link) accept(ctx context.Context) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		target := l.target
		l.mu.Unlock()
		far, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p := &pipe{near: near, far: far}
		l.mu.Lock()
		if l.down {
			p.close()
		} else {
			l.conns[p] = true
			l.wait.Go(func() { p.copy(near, far) })
			l.wait.Go(func() { p.copy(far, near) })
		}
		l.mu.Unlock()
	}
}

func (p *pipe) copy(to, from net.Conn) {
	defer p.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.frozen.RLock()
		_, err = to.Write(buffer[:n])
		p.frozen.RUnlock()
		if err != nil {
			return
		}
	}
}

func (p *pipe) close() {
	_ = p.near.Close()
	_ = p.far.Close()
}

// cut breaks all connections and refuses new ones.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for p := range l.conns {
		p.close()
		delete(l.conns, p)
	}
}

// restore allows connections again, to the etcd at a URL.
func (l *link) restore(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.target = false, address(endpoint)
}

// address returns the network address in a URL.
func address(endpoint string) string { return strings.TrimPrefix(endpoint, "http://") }

// freeze blocks the present connections indefinitely, as a router does that has lost their state. New connections work.
func (l *link) freeze(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.conns {
		p.frozen.Lock()
		t.Cleanup(p.frozen.Unlock)
	}
}
