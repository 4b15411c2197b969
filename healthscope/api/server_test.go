package api

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// closeAtEnd closes c when the test ends.
func closeAtEnd(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
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

// ask sends the text of a request on a new connection. It does not wait until the text is read.
func (p *pipes) ask(t *testing.T, request string) net.Conn {
	t.Helper()
	connection := p.dial()
	closeAtEnd(t, connection)
	go func() { _, _ = io.WriteString(connection, request) }()
	return connection
}

// TestServerAnswers covers what the server itself adds to its handler. What is not a request of HTTP is rejected in plain text, as the
// documentation of the API describes.
func TestServerAnswers(t *testing.T) {
	get := func(target string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\nConnection: close\r\n\r\n"
	}
	tests := map[string]struct{ request, status, content string }{
		"a scope":                      {get("/scopes/vfw"), "200 OK", `{"name":"vfw","namespace":"default","health":"unhealthy"`},
		"a problem":                    {get("/scopes/web"), "404 Not Found", `{"type":"about:blank","title":"Not Found","status":404,`},
		"a path that is not in order":  {get("//scopes/../x"), "404 Not Found", `{"type":"about:blank"`},
		"an oversize URL":              {get("/scopes/" + strings.Repeat("x", maxURLBytes)), "414 Request URI Too Long", `{"type":"about:blank"`},
		"a URL that cannot be decoded": {get("/%zz"), "400 Bad Request", "400 Bad Request"},
		"a body that cannot be read": {
			"POST " + groupURL + "/rollback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
			"400 Bad Request", `{"type":"about:blank","title":"Bad Request","status":400,"detail":"cannot read the body: `,
		},
		"a header beyond all bounds": {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n", "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener, _ := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(Options{Scopes: manyScopes(), Deployments: &deployments{}, Guard: rights{may: map[string][]Access{"all": nil}}})})
				answer, err := io.ReadAll(listener.ask(t, tt.request))
				head, content, _ := strings.Cut(string(answer), "\r\n\r\n")
				if err != nil || !strings.HasPrefix(head, "HTTP/1.1 "+tt.status+"\r\n") || !strings.HasPrefix(content, tt.content) {
					t.Errorf("answered with %q (%v), want %s and %q", answer, err, tt.status, tt.content)
				}
			})
		})
	}
}

// TestServerFinishesWhatItBegan asserts that a server that stops refuses connections, and completes the request in progress before it ends.
func TestServerFinishesWhatItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		slow := scopesFunc(func(ctx context.Context, _, _ string) error {
			select {
			case <-release:
				return errors.New("released")
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		listener, stop := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(Options{Scopes: slow})})
		connection := listener.ask(t, "GET /scopes HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		synctest.Wait()
		select {
		case <-listener.closed:
		default:
			t.Error("a server that stops takes connections")
		}
		close(release)
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "released") {
			t.Errorf("the request in progress was answered with %q (%v)", answer, err)
		}
		<-stopped
	})
}

func TestServerSaysWhyItCannotListen(t *testing.T) {
	s := &Server{Address: "127.0.0.1:http-but-not", Handler: http.NotFoundHandler()}
	if err := s.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `cannot listen on "127.0.0.1:http-but-not" for the status API: `) {
		t.Errorf("Run: %v", err)
	}
}

// TestServerCutsOffWhatDoesNotEnd asserts that a request that does not end delays the stop of the server for drainTimeout, and is no error:
// the program has stopped as it was asked to.
func TestServerCutsOffWhatDoesNotEnd(t *testing.T) {
	var log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		endless := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(ended) })
		listener, stop := startPiped(t, &Server{Address: "pipe", Handler: endless, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		listener.ask(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != drainTimeout {
			t.Errorf("serve ended after %s, want %s", took, drainTimeout)
		}
		<-ended
	})
	for _, want := range []string{"Serving the status API", "Stopping the status API", "Cutting off the requests"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

func TestTLSIsVersion12AtLeast(t *testing.T) {
	for given, want := range map[uint16]uint16{0: tls.VersionTLS12, tls.VersionTLS10: tls.VersionTLS12, tls.VersionTLS13: tls.VersionTLS13} {
		config := &tls.Config{MinVersion: given}
		server := (&Server{TLS: config}).newHTTPServer(t.Context(), slog.New(slog.DiscardHandler))
		if got := server.TLSConfig.MinVersion; got != want || config.MinVersion != given {
			t.Errorf("%x became %x, want %x", given, got, want)
		}
	}
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
	s := &Server{Address: "pipe", Handler: http.NotFoundHandler()}
	if err := s.serve(t.Context(), brokenListener{newPipes()}); err == nil || err.Error() != `cannot serve the status API on "pipe": out of sockets` {
		t.Errorf("serve: %v", err)
	}
}
