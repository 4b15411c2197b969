package api

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// changing is a Scopes whose scopes change.
type changing struct {
	mu          sync.Mutex
	scopes      memory
	subscribers map[int]func(namespace, name string)
	next        int
	// unsubscribed receives a value at the end of each subscription.
	unsubscribed chan struct{}
}

func newChanging(scopes memory) *changing {
	return &changing{scopes: scopes, subscribers: map[int]func(string, string){}, unsubscribed: make(chan struct{}, 10)}
}

func (c *changing) Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	id := c.next
	c.next++
	c.subscribers[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscribers, id)
		c.unsubscribed <- struct{}{}
	}
}

// set creates or replaces a scope, or deletes it if s is nil, and notifies the subscribers.
func (c *changing) set(namespace, name string, s *corev1alpha2.HealthScope) {
	c.mu.Lock()
	var kept memory
	for _, old := range c.scopes {
		if old.Namespace != namespace || old.Name != name {
			kept = append(kept, old)
		}
	}
	if s != nil {
		kept = append(kept, *s)
	}
	c.scopes = kept
	subscribers := maps.Clone(c.subscribers)
	c.mu.Unlock()
	for _, changed := range subscribers {
		changed(namespace, name)
	}
}

func (c *changing) watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.subscribers)
}

// listening is a connection to an in-memory server that receives a stream. It is closed, and the server stopped, when the test ends; stop stops
// the server before.
type listening struct {
	reader *bufio.Reader
	stop   func()
}

// listen starts an in-memory server, and requests a stream from it.
func listen(t *testing.T, o Options, target string, header http.Header) listening {
	t.Helper()
	listener, stop := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(o)})
	connection := listener.dial()
	closeAtEnd(t, connection)
	request := "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n"
	for name, values := range header {
		request += name + ": " + values[0] + "\r\n"
	}
	if _, err := io.WriteString(connection, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil) //nolint:bodyclose // The connection is closed.
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != typeStream || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, header %v", response.StatusCode, response.Header)
	}
	return listening{bufio.NewReader(response.Body), stop}
}

// event reads the next event or comment. It returns the name and the data of an event, or "comment" and the text. At the end of the
// stream, it returns io.EOF.
func (l listening) event() (name, data string, err error) {
	for {
		line, err := l.reader.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "":
			if value != "" {
				return "comment", value, nil
			}
			if name != "" {
				return name, data, nil
			}
		case "event":
			name = value
		case "data":
			data += value
		}
	}
}

// expect reads the next event, which must have the name, and decodes its data.
func expect[T any](t *testing.T, l listening, name string) T {
	t.Helper()
	got, data, err := l.event()
	if err != nil || got != name {
		t.Fatalf("event %q with %q (%v), want %q", got, data, err, name)
	}
	var decoded T
	if err := json.Unmarshal([]byte(data), &decoded); err != nil {
		t.Fatalf("event %q has the data %q: %v", got, data, err)
	}
	return decoded
}

func TestStreamOfScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes?namespace=telco&watch=true", nil)
		if got := expect[ScopeList](t, l, "snapshot"); got.Total != 2 {
			t.Errorf("snapshot %+v", got)
		}
		ill := broken()
		ill.Namespace, ill.Name = "telco", "web"
		scopes.set("default", "vfw", nil) // The stream does not select this namespace.
		scopes.set("telco", "web", &ill)
		if got := expect[ScopeItem](t, l, "scope"); got.Name != "web" || got.Health != "unhealthy" {
			t.Errorf("changed: %+v", got)
		}
		ill.Annotations = map[string]string{"a": "b"}
		scopes.set("telco", "web", &ill) // The document of the scope has not changed.
		scopes.set("telco", "web", nil)
		if got := expect[ScopeName](t, l, "deleted"); got != (ScopeName{Namespace: "telco", Name: "web"}) {
			t.Errorf("deleted: %+v", got)
		}
		well := wellScope("telco", "new", 0)
		scopes.set("telco", "new", &well)
		if got := expect[ScopeItem](t, l, "scope"); got.Name != "new" {
			t.Errorf("new: %+v", got)
		}
	})
}

func TestStreamOfOneScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes/vfw?watch=true", nil)
		if got := expect[Scope](t, l, "snapshot"); len(got.Culprits) != 2 {
			t.Errorf("snapshot %+v", got)
		}
		scopes.set("default", "vfw", nil)
		expect[ScopeName](t, l, "deleted")
		well := wellScope("default", "vfw", 0)
		scopes.set("default", "vfw", &well)
		if got := expect[Scope](t, l, "scope"); got.Health != "healthy" || len(got.Conditions) != 1 {
			t.Errorf("scope %+v", got)
		}
	})
}

func TestStreamLivesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes?watch=true", nil)
		livesAndEnds(t, scopes, l)
	})
}

// livesAndEnds asserts that a stream of scopes stays open past all deadlines, and ends when its server stops.
func livesAndEnds(t *testing.T, scopes *changing, l listening) {
	t.Helper()
	began := time.Now()
	expect[ScopeList](t, l, "snapshot")
	for i := range 5 { // Five heartbeats take longer than all deadlines of the server.
		name, text, err := l.event()
		if took := time.Since(began); name != "comment" || text != "heartbeat" || took != time.Duration(i+1)*heartbeat {
			t.Fatalf("%s %q after %s: %v", name, text, took, err)
		}
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); l.stop() }()
	began = time.Now()
	if name, text, err := l.event(); name != "comment" || !strings.Contains(text, "the server stops") {
		t.Errorf("%s %q: %v", name, text, err)
	}
	if _, _, err := l.event(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream goes on, or breaks: %v", err)
	}
	if <-stopped; time.Since(began) > time.Second {
		t.Errorf("serve ended after %s", time.Since(began))
	}
	if scopes.watched() != 0 {
		t.Error("somebody still waits for changes")
	}
}

// revocable is a Guard that denies all accesses after its rights are revoked.
type revocable struct {
	rights

	revoked atomic.Bool
}

func (r *revocable) Authorize(ctx context.Context, caller Caller, access Access) (bool, error) {
	allowed, err := r.rights.Authorize(ctx, caller, access)
	return allowed && !r.revoked.Load(), err
}

func TestStreamEndsWhenTheRightIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := &revocable{rights: rights{may: map[string][]Access{"all": nil}}}
		l := listen(t, Options{Scopes: newChanging(manyScopes()), Guard: guard}, "/scopes?watch=true", bearer("all"))
		expect[ScopeList](t, l, "snapshot")
		if name, text, err := l.event(); name != "comment" {
			t.Fatalf("%s %q: %v", name, text, err)
		}
		guard.revoked.Store(true)
		if got := expect[Problem](t, l, "problem"); got.Status != http.StatusForbidden {
			t.Errorf("problem %+v", got)
		}
		if _, _, err := l.event(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream goes on, or breaks: %v", err)
		}
	})
}

// TestStreamDropsWhoDoesNotRead asserts that the server ends the stream of a reader that does not read.
func TestStreamDropsWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		l := listen(t, Options{Scopes: scopes}, "/scopes?watch=true", nil)
		expect[ScopeList](t, l, "snapshot")
		ill := broken()
		for i := range 1000 {
			ill.Status.FirstCulprit = strings.Repeat("x", 100+i)
			scopes.set("default", "vfw", &ill)
		}
		synctest.Wait()
		began := time.Now()
		<-scopes.unsubscribed
		if took := time.Since(began); took > streamWriteTimeout {
			t.Errorf("dropped after %s, want %s", took, streamWriteTimeout)
		}
	})
}

func TestChangesAreHeldOnce(t *testing.T) {
	c := newChanges()
	for range 100 {
		c.add(ScopeName{Namespace: "b", Name: "x"})
		c.add(ScopeName{Namespace: "a", Name: "x"})
	}
	if diff := cmp.Diff([]ScopeName{{Namespace: "a", Name: "x"}, {Namespace: "b", Name: "x"}}, c.drain()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := c.drain(); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
}

// TestStreamEndsInAnOutage asserts that a reader gets a problem instead of a heartbeat when the current state of scopes is no
// longer known.
func TestStreamEndsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out atomic.Bool
		current := func() error {
			if out.Load() {
				return &OutageError{Reason: "ClusterUnreachable", Message: "no answer", LastSeen: noon.Time}
			}
			return nil
		}
		l := listen(t, Options{Scopes: newChanging(manyScopes()), Current: current}, "/scopes?watch=true", nil)
		expect[ScopeList](t, l, "snapshot")
		if name, text, err := l.event(); name != "comment" {
			t.Fatalf("%s %q: %v", name, text, err)
		}
		out.Store(true)
		if got := expect[Problem](t, l, "problem"); got.Status != http.StatusServiceUnavailable || got.Reason != "ClusterUnreachable" || !got.LastSeen.Equal(noon.Time) {
			t.Errorf("problem %+v", got)
		}
		if _, _, err := l.event(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream goes on, or breaks: %v", err)
		}
	})
}

// TestACallerMayHaveSoManyStreams asserts that a caller can have at most maxStreamsOfOne open streams, and new ones after it
// closes some.
func TestACallerMayHaveSoManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := rights{may: map[string][]Access{"greedy": nil, "modest": nil}}
		h := newHandler(Options{Scopes: manyScopes(), Guard: guard})
		watch := func(ctx context.Context, token string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/scopes?watch=true", nil)
			r.Header = bearer(token)
			return serve(h, r)
		}
		var open sync.WaitGroup
		ctx, closeAll := context.WithCancel(t.Context())
		for range maxStreamsOfOne {
			open.Go(func() {
				if got := watch(ctx, "greedy"); got.Code != http.StatusOK {
					t.Errorf("status %d: %s", got.Code, got.Body)
				}
			})
		}
		synctest.Wait()
		if got := len(h.requests); got != 0 {
			t.Errorf("streams take part in the limit of requests: %d", got)
		}
		got := watch(stopping(t.Context()), "greedy")
		checkProblem(t, got.Body.Bytes(), http.StatusTooManyRequests, `user "caller-greedy" has 32 streams open already`)
		if got := watch(stopping(t.Context()), "modest"); got.Code != http.StatusOK {
			t.Errorf("another caller is answered with status %d: %s", got.Code, got.Body)
		}
		closeAll()
		open.Wait()
		if got := watch(stopping(t.Context()), "greedy"); got.Code != http.StatusOK {
			t.Errorf("after all are closed: status %d: %s", got.Code, got.Body)
		}
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
	for range maxRequests {
		acquire(h.requests)
	}
	got = get(t, h, "/scopes", nil)
	checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "requests are under way already")
	if got := get(t, h, "/healthz", nil); got.Code != http.StatusOK {
		t.Errorf("a busy server seems dead: %d", got.Code)
	}
}

// newCertificate returns a certificate for localhost, and a pool with the certificate as the only trusted one.
func newCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{DNSNames: []string{"localhost"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, trusted
}

// listenHTTPS is like listen, over HTTPS and HTTP/2.
func listenHTTPS(t *testing.T, o Options, target string) listening {
	t.Helper()
	certificate, trusted := newCertificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	listener, stop := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(o), TLS: config})
	client := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13},
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil },
	}
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost"+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.RoundTrip(r) //nolint:bodyclose // closeAtEnd closes it.
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, response.Body)
	if response.ProtoMajor != 2 || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != typeStream {
		t.Fatalf("%s, status %d, header %v", response.Proto, response.StatusCode, response.Header)
	}
	return listening{bufio.NewReader(response.Body), stop}
}

// TestStreamLivesAndEndsOverHTTPS asserts that a quiet stream stays open over HTTP/2, where an expired deadline ends a stream even when nothing is written.
func TestStreamLivesAndEndsOverHTTPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		livesAndEnds(t, scopes, listenHTTPS(t, Options{Scopes: scopes}, "/scopes?watch=true"))
	})
}
