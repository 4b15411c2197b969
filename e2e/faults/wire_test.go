package faults_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/healthscope/healthscope/e2e/faults"
)

// echo starts a server that returns every line.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					if _, err := c.Write(append(lines.Bytes(), '\n')); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// caller is a client of an echo server.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, w *faults.Wire) *caller {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &caller{c, bufio.NewReader(c)}
}

// ask sends a line and reads it back. It returns the error of either.
func (c *caller) ask(t *testing.T, within time.Duration) error {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return err
	}
	_, err := c.lines.ReadString('\n')
	return err
}

// moment is how long a test waits for a response that must not arrive. It is also the delay of a slow wire.
const moment = 50 * time.Millisecond

// strung returns a wire to an echo server. It checks that no goroutine of the wire is left after the test.
func strung(t *testing.T) *faults.Wire {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	w, err := faults.NewWire(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestBytesPass(t *testing.T) {
	if err := call(t, strung(t)).ask(t, testTimeout); err != nil {
		t.Error(err)
	}
}

func TestBlackHole(t *testing.T) {
	w := strung(t)
	c := call(t, w)
	w.BlackHole()
	if err := c.ask(t, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	if err := call(t, w).ask(t, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection gets %v, want no answer", err)
	}
	w.Mend()
	if err := c.ask(t, testTimeout); err != nil {
		t.Error(err)
	}
}

func TestReset(t *testing.T) {
	w := strung(t)
	c := call(t, w)
	if err := c.ask(t, testTimeout); err != nil {
		t.Fatal(err)
	}
	w.Reset()
	if err := c.ask(t, testTimeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a broken connection", err)
	}
	w.Refuse(true)
	fresh, err := (&net.Dialer{Timeout: testTimeout}).DialContext(t.Context(), "tcp", w.Addr())
	if err != nil {
		return // It was reset before DialContext returned.
	}
	defer func() { _ = fresh.Close() }()
	if err := (&caller{fresh, bufio.NewReader(fresh)}).ask(t, testTimeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection gets %v, want a broken connection", err)
	}
}

func TestHalfOpen(t *testing.T) {
	w := strung(t)
	c := call(t, w)
	if err := c.ask(t, testTimeout); err != nil {
		t.Fatal(err)
	}
	w.HalfOpen()
	if err := c.ask(t, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	if n := w.Connections(); n != 0 {
		t.Errorf("%d connections pass bytes on", n)
	}
	if err := call(t, w).ask(t, testTimeout); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestASlowWire(t *testing.T) {
	w := strung(t)
	w.Delay(moment)
	begin := time.Now()
	if err := call(t, w).ask(t, testTimeout); err != nil || time.Since(begin) < 2*moment {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}
