package kubeconfig

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get requests a URL, and returns the body or the error.
func get(ctx context.Context, t testing.TB, client *http.Client, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(response.Body)
	return string(data), errors.Join(err, response.Body.Close())
}

// endless writes the same again and again until the client closes the connection.
func endless(w http.ResponseWriter, what string) {
	for {
		if _, err := io.WriteString(w, what); err != nil {
			return
		}
	}
}

func TestHostileAnswersAreErrors(t *testing.T) {
	small := limits{timeout: time.Minute, body: 1 << 20, errorBody: 1 << 10, event: 1 << 10}
	soon := limits{timeout: 50 * time.Millisecond}
	cases := map[string]struct {
		limits  limits
		path    string
		handler http.HandlerFunc
		want    string
	}{
		"redirect": {small, "/api", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
			"the server redirects (302), which is not followed"},
		"redirect that keeps the method": {small, "/api", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		}, "the server redirects (308), which is not followed"},
		"redirect of a watch": {small, "/api?watch=true", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		},
			"the server redirects (301), which is not followed"},
		"endless answer":    {small, "/api", func(w http.ResponseWriter, _ *http.Request) { endless(w, "x") }, "the server's answer has more than 1048576 bytes"},
		"announced answer":  {small, "/api", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1048577") }, "the server's answer has more than 1048576 bytes"},
		"endless error":     {small, "/api", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden); endless(w, "x") }, "the server's answer has more than 1024 bytes"},
		"endless for watch": {small, "/api?watch=1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone); endless(w, "x") }, "the server's answer has more than 1024 bytes"},
		"compressed answer": {small, "/api", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zeros(t, 2<<20))
		}, "the server's answer has more than 1048576 bytes"},
		"huge event": {small, "/api?watch=true", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"a":"`)
			endless(w, `}\"`)
		}, "the server's event has more than 1024 bytes"},
		"huge event in protobuf": {small, "/api?watch=true", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			_, _ = w.Write([]byte{0, 0, 4, 1})
		}, "the server's event has more than 1024 bytes"},
		"watch in another form": {small, "/api?watch=true", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/cbor-seq")
		}, `the server watches in the form "application/cbor-seq", which is neither JSON nor Kubernetes' protobuf`},
		"endless header": {small, "/api", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2*maxHeader)) }, ""},
		"no answer":      {soon, "/api", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no complete answer within 50ms"},
		"no watch":       {soon, "/api?watch=true", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no complete answer within 50ms"},
		"answer that stops": {soon, "/api", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "no complete answer within 50ms"},
		"error that stops, for a watch": {soon, "/api?watch=true", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "no complete answer within 50ms"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var elsewhere atomic.Bool
			server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere.Store(true)
					return
				}
				c.handler(w, r)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := get(ctx, t, clientOf(t, server, c.limits), server.URL+c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if elsewhere.Load() {
				t.Error("the redirect was followed")
			}
			if c.limits == soon && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v does not say that the deadline is over", err)
			}
		})
	}
}

func TestCancelledRequestReturnsCanceled(t *testing.T) {
	server := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := get(ctx, t, clientOf(t, server, limits{}), server.URL); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

// TestTimeoutDoesNotEndARunningWatch checks that the timeout of a request does not end a watch that has begun, and that the size limit applies to each event.
func TestTimeoutDoesNotEndARunningWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := `{"type":"ADDED","object":{"a":"` + strings.Repeat("[", 800) + `"}}` + "\n"
		server, dial := pipeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json;stream=watch")
			for range 5 {
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
				<-time.After(time.Minute)
			}
		})
		client := pipeClient(t, server, dial, limits{timeout: 10 * time.Second, body: 1 << 10, event: 1 << 10})
		got, err := get(t.Context(), t, client, "https://example.com/api?watch=true")
		if want := strings.Repeat(event, 5); err != nil || got != want {
			t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
		}
	})
}

// TestUnresponsiveConnectionEndsTheWatch checks that a watch ends within 15 seconds when its connection delivers nothing any more and is not closed, at whatever time that begins.
func TestUnresponsiveConnectionEndsTheWatch(t *testing.T) {
	for second := range 15 {
		// As long as the server answers pings, the watch stays open, although no event comes for an hour.
		synctest.Test(t, func(t *testing.T) {
			checkUnresponsiveConnection(t, time.Hour+time.Duration(second)*time.Second+time.Millisecond)
		})
	}
}

// checkUnresponsiveConnection opens a watch, makes its connection unresponsive, and checks that the watch ends.
func checkUnresponsiveConnection(t *testing.T, begin time.Duration) {
	server, dial := pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	var conn *unresponsiveConn
	client := pipeClient(t, server, func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		conn = &unresponsiveConn{Conn: connection, closed: make(chan struct{})}
		return conn, err
	}, limits{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/api?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadFull(response.Body, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	<-time.After(begin)
	conn.broken.Store(true)
	began := time.Now()
	if n, err := response.Body.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes came from an unresponsive connection", n)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestClientCanWatchThroughLimitedTransport(t *testing.T) {
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for i := range 3 {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"X","metadata":{"name":"n`+strconv.Itoa(i)+`"}}}`+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	config := configOf(t, server)
	t.Cleanup(transportOf(t, config).CloseIdleConnections)
	client, err := dynamic.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "xs"}).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range 3 {
		if e := <-w.ResultChan(); e.Object == nil || string(e.Type) != "ADDED" {
			t.Fatalf("event %d is %v", i, e)
		}
	}
}

func TestEventLimitAppliesToEachEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 100
		const around = len(`{"a":""}`)
		sizes := rapid.SliceOfN(rapid.IntRange(0, limit), 1, 8).Draw(t, "sizes")
		letter := rapid.SampledFrom([]string{"aa", "}}", `\"`, "{{", "]{", `\\`})
		var json, protobuf []byte
		jsonFits, protobufFits := true, true
		for i, size := range sizes {
			event := `{"a":"` + strings.Repeat(letter.Draw(t, "letter"), size/2) + `"}`
			length := size/2*2 + around
			json = append(json, event+"\n"...)
			// The line break after an event counts for the next one.
			jsonFits = jsonFits && length+min(i, 1) <= limit
			protobuf = append(binary.BigEndian.AppendUint32(protobuf, uint32(length)), event...)
			protobufFits = protobufFits && length <= limit
		}
		chunk := rapid.IntRange(1, 50).Draw(t, "chunk")
		if err := addAll(&protobufEventLimiter{limit: limit}, protobuf, chunk); (err == nil) != protobufFits {
			t.Errorf("protobuf: %v, sizes %v", err, sizes)
		}
		if err := addAll(&jsonEventLimiter{limit: limit}, json, chunk); (err == nil) != jsonFits {
			t.Errorf("JSON: %v, sizes %v", err, sizes)
		}
	})
}

func addAll(b sizeLimiter, data []byte, chunk int) error {
	for len(data) > 0 {
		n := min(chunk, len(data))
		if err := b.add(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// FuzzEvents checks that no stream makes a limiter panic, or lets it pass more than the limit between two ends of events.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"a":"}"}` + "\n" + `{"b":[1,2]}`))
	f.Add([]byte{0, 0, 0, 1, 'x', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 16
		for name, pair := range map[string][2]sizeLimiter{
			"JSON":     {&jsonEventLimiter{limit: limit}, &jsonEventLimiter{limit: limit}},
			"protobuf": {&protobufEventLimiter{limit: limit}, &protobufEventLimiter{limit: limit}},
		} {
			whole, split := addAll(pair[0], data, len(data)+1), addAll(pair[1], data, 1)
			if (whole == nil) != (split == nil) {
				t.Errorf("%s: at once %v, byte by byte %v", name, whole, split)
			}
		}
		if len(data) > limit && !bytes.ContainsAny(data[:limit+1], "}]") && (&jsonEventLimiter{limit: limit}).add(data) == nil {
			t.Errorf("%q passes", data)
		}
	})
}

// pipeServer returns a TLS server that is reached through pipes in memory, and how.
func pipeServer(t *testing.T, handler http.HandlerFunc) (*httptest.Server, func(context.Context, string, string) (net.Conn, error)) {
	t.Helper()
	closed := make(chan struct{})
	l := pipes{connections: make(chan net.Conn), closed: closed, end: sync.OnceFunc(func() { close(closed) })}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener, server.EnableHTTP2 = l, true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case l.connections <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func pipeClient(t *testing.T, server *httptest.Server, dial func(context.Context, string, string) (net.Conn, error), l limits) *http.Client {
	t.Helper()
	client := clientOf(t, server, l)
	pool := client.Transport
	for {
		wrapper, ok := pool.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			break
		}
		pool = wrapper.WrappedRoundTripper()
	}
	transport, ok := pool.(*http.Transport)
	if !ok {
		t.Fatalf("the transport is a %T", pool)
	}
	transport.DialContext = dial
	return client
}

// pipes is a listener for pipes in memory.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
	end         func()
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.end()
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443} }

// unresponsiveConn is a connection that delivers nothing and drops what is written once it is broken.
type unresponsiveConn struct {
	net.Conn

	broken atomic.Bool
	closed chan struct{}
}

func (c *unresponsiveConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.broken.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *unresponsiveConn) Write(p []byte) (int, error) {
	if c.broken.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *unresponsiveConn) Close() error {
	if c.broken.Load() {
		close(c.closed)
	}
	return c.Conn.Close()
}
