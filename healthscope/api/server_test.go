package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// start runs a server on a free loopback port. stop stops it, and returns the error of serve.
func start(t *testing.T, h http.Handler) (base string, stop func() error) {
	t.Helper()
	s := &Server{Address: "127.0.0.1:0", Handler: h}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.serve(ctx, listener) }()
	return "http://" + listener.Addr().String(), func() error { cancel(); return <-ran }
}

// ask sends a request on a new connection.
func ask(ctx context.Context, method, url string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), errors.Join(err, response.Body.Close())
}

// closeAtEnd closes c when the test ends.
func closeAtEnd(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestServerServes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	base, stop := start(t, NewHandler(Options{Scopes: manyScopes()}))
	tests := map[string]struct {
		method, target string
		status         int
		body           string
	}{
		"a scope":                     {method: http.MethodGet, target: "/scopes/vfw", status: 200, body: `{"name":"vfw","namespace":"default","health":"unhealthy"`},
		"only the header":             {method: http.MethodHead, target: "/scopes/vfw", status: 200},
		"a problem":                   {method: http.MethodGet, target: "/scopes/web", status: 404, body: `{"type":"about:blank","title":"Not Found","status":404,`},
		"an oversize URL":             {method: http.MethodGet, target: "/scopes/" + strings.Repeat("x", maxURLBytes), status: 414, body: `{"type":"about:blank"`},
		"a header beyond all bounds":  {method: http.MethodGet, target: "/scopes/" + strings.Repeat("x", 2*maxHeaderBytes), status: 431},
		"a path that is not in order": {method: http.MethodGet, target: "//scopes/../x", status: 404, body: `{"type":"about:blank"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, body, err := ask(t.Context(), tt.method, base+tt.target)
			if err != nil {
				t.Fatal(err)
			}
			if status != tt.status || !strings.HasPrefix(body, tt.body) || tt.method == http.MethodHead && body != "" {
				t.Errorf("%d %q, want %d %q", status, body, tt.status, tt.body)
			}
		})
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestWhatIsNoRequestIsRefusedInText asserts that requests that no handler can get are rejected in plain text, as the
// documentation of the API describes.
func TestWhatIsNoRequestIsRefusedInText(t *testing.T) {
	base, stop := start(t, NewHandler(Options{}))
	for request, want := range map[string]string{
		"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                     "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n": "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain",
	} {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, connection)
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), want) {
			t.Errorf("%.20q is answered with %q (%v), want %q, and that the connection is closed", request, answer, err, want)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestServerFinishesWhatItBegan(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	entered, release := make(chan struct{}), make(chan struct{})
	slow := scopesFunc(func(ctx context.Context) error {
		close(entered)
		select {
		case <-release:
			return errors.New("released")
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	base, stop := start(t, NewHandler(Options{Scopes: slow}))
	answered := make(chan string, 1)
	go func() {
		status, body, err := ask(t.Context(), http.MethodGet, base+"/scopes")
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- fmt.Sprint(status, " ", body)
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // The server refuses new connections while the request is in progress.
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			break
		}
		closeAtEnd(t, connection)
	}
	close(release)
	if got := <-answered; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "released") {
		t.Errorf("the request under way was answered with %s", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestServerSaysWhyItCannotListen(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, taken)
	for name, address := range map[string]string{"in use": taken.Addr().String(), "no port": "127.0.0.1", "no number": "127.0.0.1:http-but-not"} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Address: address, Handler: http.NotFoundHandler()}
			if err := s.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("cannot listen on %q for the status API: ", address)) {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// pipes is a listener whose connections are in memory, so that time can be simulated.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
	close       func()
}

func newPipes() *pipes {
	p := &pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.connections <- server
	return client
}

// startPiped runs a server with connections in memory, until stop is called or the test ends.
func startPiped(t *testing.T, s *Server) (listener *pipes, stop func()) {
	t.Helper()
	listener = newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.serve(ctx, listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return listener, stop
}

// TestServerCutsOffWhatDoesNotEnd asserts that a request that does not end delays the stop of the server for drainTimeout, and is no error:
// the program has stopped as it was asked to.
func TestServerCutsOffWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		endless := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(ended) })
		listener, stop := startPiped(t, &Server{Address: "pipe", Handler: endless})
		connection := listener.dial()
		closeAtEnd(t, connection)
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != drainTimeout {
			t.Errorf("serve ended after %s, want %s", took, drainTimeout)
		}
		<-ended
	})
}

// TestServerHangsUp asserts that the server closes the connections of callers that send their requests too slowly, send none, or never read
// the responses.
func TestServerHangsUp(t *testing.T) {
	const head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
	tests := map[string]struct {
		send   string
		unread bool
		after  time.Duration
	}{
		"says nothing":               {send: "", after: readHeaderTimeout},
		"does not end the header":    {send: head, after: readHeaderTimeout},
		"asks nothing more":          {send: head + "\r\n", after: idleTimeout},
		"does not send what it says": {send: head + "Content-Length: 10\r\n\r\n", after: readTimeout},
		"does not read":              {send: strings.Repeat(head+"\r\n", 1000), unread: true, after: writeTimeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener, _ := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(Options{})})
				connection := listener.dial()
				closeAtEnd(t, connection)
				began := time.Now()
				sent := make(chan error, 1)
				go func() { _, err := io.WriteString(connection, tt.send); sent <- err }()
				var want, err error
				if tt.unread {
					want, err = io.ErrClosedPipe, <-sent
				} else {
					_, err = io.Copy(io.Discard, connection)
					if err := <-sent; err != nil {
						t.Errorf("cannot send: %v", err)
					}
				}
				if took := time.Since(began); !errors.Is(err, want) || took != tt.after {
					t.Errorf("hung up after %s (%v), want %s", took, err, tt.after)
				}
			})
		})
	}
}

// brokenListener is a listener that cannot accept connections.
type brokenListener struct{ *pipes }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("out of sockets") }

func TestServerSaysWhyItCannotGoOn(t *testing.T) {
	var log strings.Builder
	s := &Server{Address: "pipe", Handler: http.NotFoundHandler(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	err := s.serve(t.Context(), brokenListener{newPipes()})
	if err == nil || err.Error() != `cannot serve the status API on "pipe": out of sockets` {
		t.Errorf("serve: %v", err)
	}
	if !strings.Contains(log.String(), "Serving the status API") {
		t.Errorf("log: %s", log.String())
	}
}
