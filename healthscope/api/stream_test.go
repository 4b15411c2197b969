package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// changing is a Scopes whose scopes change. It has one subscriber.
type changing struct {
	mu      sync.Mutex
	scopes  memory
	changed func(namespace, name string)
	// err is the error of Get; nil for none.
	err error
	// unsubscribed is closed at the end of the subscription.
	unsubscribed chan struct{}
}

func newChanging(scopes memory) *changing {
	return &changing{scopes: scopes, changed: func(string, string) {}, unsubscribed: make(chan struct{})}
}

func (c *changing) Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	return c.scopes.Get(ctx, namespace, name)
}

func (c *changing) List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scopes.List(ctx, namespace)
}

func (c *changing) Subscribe(changed func(namespace, name string)) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
	return func() { close(c.unsubscribed) }
}

// put creates or replaces a scope, and notifies the subscriber.
func (c *changing) put(s corev1alpha2.HealthScope) { c.replace(s.Namespace, s.Name, s) }

// remove deletes a scope, and notifies the subscriber.
func (c *changing) remove(namespace, name string) { c.replace(namespace, name) }

func (c *changing) replace(namespace, name string, replacement ...corev1alpha2.HealthScope) {
	c.mu.Lock()
	c.scopes = append(slices.DeleteFunc(slices.Clone(c.scopes), func(old corev1alpha2.HealthScope) bool { return old.Namespace == namespace && old.Name == name }), replacement...)
	changed := c.changed
	c.mu.Unlock()
	changed(namespace, name)
}

// streamReader reads a stream from an in-memory server. It is closed, and the server stopped, when the test ends; stop stops the server before.
type streamReader struct {
	body *bufio.Reader
	stop func()
}

// listen starts an in-memory server, and requests a stream from it, which must begin with the response of the path without watch.
func listen(t *testing.T, o Options, target string, header http.Header) streamReader {
	t.Helper()
	return listenTo(t, &Server{Address: "pipe", Handler: NewHandler(o)}, &http.Transport{}, target, header)
}

// listenHTTPS is like listen, over HTTPS and HTTP/2.
func listenHTTPS(t *testing.T, o Options, target string, header http.Header) streamReader {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // It has a certificate for example.com.
	certified.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(certified.Certificate())
	s := &Server{Address: "pipe", Handler: NewHandler(o), TLS: &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS13}}
	client := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "example.com", MinVersion: tls.VersionTLS13}}
	return listenTo(t, s, client, target, header)
}

func listenTo(t *testing.T, s *Server, client *http.Transport, target string, header http.Header) streamReader {
	t.Helper()
	scheme := "http://"
	if s.TLS != nil {
		scheme = "https://"
	}
	listener, stop := startPiped(t, s)
	client.DialContext = func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil }
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"localhost"+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	response, err := client.RoundTrip(r) //nolint:bodyclose // closeAtEnd closes it.
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, response.Body)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != typeStream || (response.ProtoMajor == 2) != (s.TLS != nil) {
		t.Fatalf("%s, status %d, header %v", response.Proto, response.StatusCode, response.Header)
	}
	checkHeader(t, response.Header)
	l := streamReader{bufio.NewReader(response.Body), stop}
	l.expect(t, "retry: 2000")
	l.expect(t, event(t, "snapshot", json.RawMessage(get(t, s.Handler, strings.Replace(target, "watch=true", "watch=false", 1), header).Body.Bytes())))
	return l
}

// event returns an event with a document.
func event(t *testing.T, name string, document any) string {
	t.Helper()
	data, err := encode(document)
	if err != nil {
		t.Fatal(err)
	}
	return "event: " + name + "\ndata: " + strings.TrimSpace(string(data))
}

// expect asserts what comes next: an event, or a comment, which begins with a colon.
func (l streamReader) expect(t *testing.T, want string) {
	t.Helper()
	var got string
	for !strings.HasSuffix(got, "\n\n") {
		line, err := l.body.ReadString('\n')
		if got += line; err != nil {
			t.Fatalf("got %q (%v), want %q", got, err, want)
		}
	}
	if strings.TrimSuffix(got, "\n\n") != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// expectEnd asserts that the stream ends in order.
func (l streamReader) expectEnd(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(l.body); len(rest) > 0 || err != nil {
		t.Errorf("the stream has not ended, or has ended with an error: %q, %v", rest, err)
	}
}

func TestStreamOfScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes?namespace=telco&watch=true", nil)
		ill, well := illScope("telco", "web"), wellScope("telco", "new", 0)
		scopes.put(illScope("default", "web")) // The stream does not select this namespace.
		scopes.put(ill)
		l.expect(t, event(t, "scope", newScopeItem(&ill)))
		ill.Annotations = map[string]string{"a": "b"}
		scopes.put(ill) // The document of the scope has not changed.
		scopes.remove("telco", "web")
		l.expect(t, event(t, "deleted", ScopeName{Namespace: "telco", Name: "web"}))
		scopes.put(well)
		l.expect(t, event(t, "scope", newScopeItem(&well)))
	})
}

func TestStreamOfOneScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		ill, well := broken(), wellScope("default", "vfw", 0)
		l := listen(t, Options{Scopes: scopes}, "/scopes/vfw?watch=true", nil)
		scopes.put(illScope("default", "web")) // The stream selects neither this name nor this namespace.
		scopes.put(illScope("telco", "vfw"))
		scopes.put(ill) // The document of the scope has not changed.
		scopes.remove("default", "vfw")
		l.expect(t, event(t, "deleted", ScopeName{Namespace: "default", Name: "vfw"}))
		scopes.put(well)
		l.expect(t, event(t, "scope", NewScope(&well)))
	})
}

func TestStreamOfSelectedScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/v1alpha1/scopes?labelSelector=tier&health=healthy&watch=true", nil)
		web := wellScope("telco", "web", 0)
		ill, well := illScope("telco", "lost"), wellScope("telco", "lost", 0)
		scopes.put(well) // Without its label, it is not selected.
		ill.Labels, well.Labels = map[string]string{"tier": "core"}, map[string]string{"tier": "core"}
		scopes.put(well)
		l.expect(t, event(t, "scope", newScopeItem(&well)))
		scopes.put(web) // Without its label, it is no longer selected.
		l.expect(t, event(t, "deleted", ScopeName{Namespace: "telco", Name: "web"}))
		scopes.put(ill)
		l.expect(t, event(t, "deleted", ScopeName{Namespace: "telco", Name: "lost"}))
	})
}

// TestSlowReaderGetsTheLatestState asserts that changes that a reader has not read yet are held once for each scope, in order.
func TestSlowReaderGetsTheLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes?watch=true", nil)
		first := wellScope("telco", "lost", 0)
		scopes.put(first)
		synctest.Wait() // The server writes the first change, and waits for the reader.
		for range 100 {
			for _, s := range []corev1alpha2.HealthScope{illScope("telco", "web"), illScope("default", "new"), wellScope("telco", "web", 1), wellScope("default", "new", 0)} {
				scopes.put(s)
			}
		}
		l.expect(t, event(t, "scope", newScopeItem(&first)))
		for _, s := range []corev1alpha2.HealthScope{wellScope("default", "new", 0), wellScope("telco", "web", 1)} {
			l.expect(t, event(t, "scope", newScopeItem(&s)))
		}
		l.expect(t, ": heartbeat")
	})
}

func TestChangesAreTakenOnce(t *testing.T) {
	c := newChanges()
	c.add(ScopeName{Namespace: "a", Name: "x"})
	if first, again := c.drain(), c.drain(); len(first) != 1 || len(again) != 0 {
		t.Errorf("changes %v, and again %v", first, again)
	}
}

// TestStreamDropsWhoDoesNotRead asserts that the server ends the stream of a reader that does not read.
func TestStreamDropsWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		listen(t, Options{Scopes: scopes}, "/scopes?watch=true", nil)
		began := time.Now()
		scopes.put(wellScope("default", "vfw", 0))
		<-scopes.unsubscribed
		if took := time.Since(began); took != streamWriteTimeout {
			t.Errorf("dropped after %s, want %s", took, streamWriteTimeout)
		}
	})
}

// TestStreamLivesAndEnds asserts that a quiet stream stays open past all deadlines, and ends when its server stops. Over HTTP/2, an expired deadline
// ends a stream even when nothing is written.
func TestStreamLivesAndEnds(t *testing.T) {
	for name, listen := range map[string]func(*testing.T, Options, string, http.Header) streamReader{"HTTP": listen, "HTTPS": listenHTTPS} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scopes := newChanging(manyScopes())
				l := listen(t, Options{Scopes: scopes}, "/scopes?watch=true", nil)
				began := time.Now()
				for i := range 5 { // Five heartbeats take longer than all deadlines of the server.
					l.expect(t, ": heartbeat")
					if took := time.Since(began); took != time.Duration(i+1)*heartbeat {
						t.Fatalf("heartbeat after %s", took)
					}
				}
				stopped := make(chan struct{})
				go func() { defer close(stopped); l.stop() }()
				began = time.Now()
				l.expect(t, ": the server stops; connect again")
				l.expectEnd(t)
				if <-stopped; time.Since(began) >= drainTimeout { // The end of a connection of HTTP/2 alone may take seconds.
					t.Errorf("serve ended after %s, as if the stream had been cut off", time.Since(began))
				}
				<-scopes.unsubscribed
			})
		})
	}
}

// revocable is a Guard that denies all accesses after its rights are revoked, and cannot decide while it is away.
type revocable struct {
	rights

	revoked, away atomic.Bool
}

func (r *revocable) Authorize(ctx context.Context, caller Caller, access Access) (bool, error) {
	if r.away.Load() {
		return false, errors.New("no answer")
	}
	allowed, err := r.rights.Authorize(ctx, caller, access)
	return allowed && !r.revoked.Load(), err
}

// TestStreamEndsWithAProblem asserts that a reader gets a problem instead of a heartbeat when it may not read the stream any more, and when the
// current state of scopes is no longer known. A Guard that cannot decide does not end the stream.
func TestStreamEndsWithAProblem(t *testing.T) {
	tests := map[string]struct {
		happen func(guard *revocable, out *atomic.Bool)
		want   Problem
	}{
		"the right is revoked": {
			func(guard *revocable, _ *atomic.Bool) { guard.revoked.Store(true) },
			Problem{Status: 403, Title: "Forbidden", Detail: `user "caller-all" may not list HealthScopes in all namespaces; with the parameter namespace those of one are listed`},
		},
		"an outage": {
			func(_ *revocable, out *atomic.Bool) { out.Store(true) },
			Problem{
				Status: 503, Title: "Service Unavailable", Detail: "cannot say how HealthScopes are now: no answer; it was known last at 2026-05-01T10:00:00Z",
				Reason: "ClusterUnreachable", LastSeen: noon.UTC(),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard, out := &revocable{rights: rights{may: map[string][]Access{"all": nil}}}, &atomic.Bool{}
				current := func() error {
					if out.Load() {
						return &OutageError{Reason: "ClusterUnreachable", Message: "no answer", LastSeen: noon.Time}
					}
					return nil
				}
				l := listen(t, Options{Scopes: newChanging(manyScopes()), Guard: guard, Current: current}, "/scopes?watch=true", bearer("all"))
				guard.away.Store(true)
				l.expect(t, ": heartbeat")
				guard.away.Store(false)
				tt.happen(guard, out)
				tt.want.Type, tt.want.Instance = "about:blank", "/scopes"
				l.expect(t, event(t, "problem", tt.want))
				l.expectEnd(t)
			})
		})
	}
}

// TestStreamEndsWhenAScopeCannotBeSent asserts that a stream does not go on without a change: the response to the next request has the cause.
func TestStreamEndsWhenAScopeCannotBeSent(t *testing.T) {
	for name, fail := range map[string]func(*changing){
		"it cannot be read":    func(c *changing) { c.err = errors.New("no cache"); c.remove("default", "vfw") },
		"it cannot be encoded": func(c *changing) { c.put(timeless()[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scopes := newChanging(manyScopes())
				l := listen(t, Options{Scopes: scopes}, "/scopes/vfw?watch=true", nil)
				synctest.Wait()
				fail(scopes)
				l.expectEnd(t)
			})
		})
	}
}

func TestHeaderOfAStream(t *testing.T) {
	got := send(t.Context(), NewHandler(Options{Scopes: manyScopes()}), http.MethodHead, "/scopes?watch=true", nil, "")
	if got.Code != http.StatusOK || got.Header().Get("Content-Type") != typeStream || got.Body.Len() > 0 {
		t.Errorf("status %d, header %v, content %q", got.Code, got.Header(), got.Body)
	}
}

// TestACallerMayHaveSoManyStreams asserts that a caller can have at most maxStreamsOfOne open streams, and new ones after it
// closes some.
func TestACallerMayHaveSoManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := rights{may: map[string][]Access{"greedy": nil, "modest": nil}}
		h := newHandler(Options{Scopes: manyScopes(), Guard: guard})
		check := func(ctx context.Context, token, target string, want int) {
			t.Helper()
			got := send(ctx, h, http.MethodGet, target, bearer(token), "")
			if got.Code != want {
				t.Errorf("%s of %s: status %d, want %d: %s", target, token, got.Code, want, got.Body)
			}
			if want == http.StatusTooManyRequests {
				checkProblem(t, got.Body.Bytes(), want, `user "caller-greedy" has 32 streams open already; close one, or ask without watch`)
			}
		}
		var open sync.WaitGroup
		ctx, closeAll := context.WithCancel(t.Context())
		for range maxStreamsOfOne {
			open.Go(func() { check(ctx, "greedy", "/scopes?watch=true", http.StatusOK) })
		}
		synctest.Wait()
		if got := len(h.requests); got != 0 {
			t.Errorf("streams take part in the limit of requests: %d", got)
		}
		check(t.Context(), "greedy", "/scopes/vfw?watch=true", http.StatusTooManyRequests)
		check(t.Context(), "greedy", "/scopes", http.StatusOK)
		check(stopping(t.Context()), "modest", "/scopes?watch=true", http.StatusOK)
		closeAll()
		open.Wait()
		check(stopping(t.Context()), "greedy", "/scopes?watch=true", http.StatusOK)
		if len(h.streams.byCaller) != 0 || h.streams.total != 0 {
			t.Errorf("something is held of streams that are over: %v, %d", h.streams.byCaller, h.streams.total)
		}
	})
}

func TestStreamsHaveALimit(t *testing.T) {
	h := newHandler(Options{Scopes: manyScopes()})
	for range maxStreams {
		if _, err := h.streams.open(""); err != nil {
			t.Fatal(err)
		}
	}
	got := get(t, h, "/scopes?watch=true", nil)
	checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "streams are open already")
}
