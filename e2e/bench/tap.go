package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// stateLabel is the label in A&AI that holds a resource's state.
const stateLabel = "healthscope.core.oam.dev/status"

// tap stands between the controller and A&AI and hears what A&AI acknowledges.
type tap struct {
	server *http.Server
	served sync.WaitGroup

	mu    sync.Mutex // guards what follows
	waits map[*acknowledgement]struct{}
}

// acknowledgement is a write that is waited for: one that names a resource and a state.
type acknowledgement struct {
	resource, state string
	done            chan time.Time
}

func newTap() *tap { return &tap{waits: map[*acknowledgement]struct{}{}} }

// start starts to listen in on the A&AI at a URL, and returns the URL to use instead.
func (t *tap) start(target string) (string, error) {
	to, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("cannot listen in on %q: %w", target, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed by stop.
	if err != nil {
		return "", fmt.Errorf("cannot listen in on %q: %w", target, err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: t.hear,
	}
	t.server = &http.Server{ReadHeaderTimeout: requestLimit, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, body)))
	})}
	t.served.Go(func() { _ = t.server.Serve(listener) })
	return "http://" + listener.Addr().String(), nil
}

// bodyKey is the key of a request's body in its context.
type bodyKey struct{}

// hear tells who waits for a write that A&AI has just acknowledged.
func (t *tap) hear(response *http.Response) error {
	now := time.Now()
	if response.StatusCode >= http.StatusMultipleChoices || response.Request.Method == http.MethodGet {
		return nil
	}
	body, _ := response.Request.Context().Value(bodyKey{}).([]byte)
	writes := writesOf(response.Request.URL.Path, body)
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.waits {
		if slices.ContainsFunc(writes, a.heardIn) {
			delete(t.waits, a)
			a.done <- now
		}
	}
	return nil
}

// write is one write in a request: path and body.
type write struct {
	URI  string          `json:"uri"`
	Body json.RawMessage `json:"body"`
}

// writesOf returns the writes of a request, of which one in bulk has many.
func writesOf(path string, body []byte) []write {
	var bulk struct {
		Operations []write `json:"operations"`
	}
	if err := json.Unmarshal(body, &bulk); err == nil && len(bulk.Operations) > 0 {
		return bulk.Operations
	}
	return []write{{URI: path, Body: body}}
}

// heardIn says whether a write is the one that is waited for.
func (a *acknowledgement) heardIn(w write) bool {
	return strings.Contains(w.URI, a.resource) && strings.Contains(string(w.Body), stateLabel+"="+a.state+`"`)
}

// expect begins to wait for an acknowledgement.
func (t *tap) expect(resource, state string) func(context.Context) (time.Time, error) {
	a := &acknowledgement{resource: resource, state: state, done: make(chan time.Time, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits[a] = struct{}{}
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, requestLimit, fmt.Errorf("not done after %s", requestLimit))
		defer cancel()
		select {
		case at := <-a.done:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waited for A&AI to acknowledge that %q is %s: %w", resource, state, context.Cause(ctx))
		}
	}
}

func (t *tap) stop() error {
	if t.server == nil {
		return nil
	}
	err := t.server.Close()
	t.served.Wait()
	return err
}
