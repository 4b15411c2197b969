package suite

import (
	"io"
	"net/http"
	"path"
	"sync"
)

// Tap observes the requests of a client, counts its open watches, and delays
// requests on demand. Its zero value is ready to use. It is safe for concurrent use.
type Tap struct {
	// Note, if set, is called for each request before the request is sent.
	Note func(*http.Request)

	mu   sync.Mutex
	open map[string]int
	// gates holds, by resource, the channels that requests wait for until they are closed.
	gates map[string]chan struct{}
}

// Wrap returns a transport whose requests the tap observes. It is for rest.Config.Wrap.
func (t *Tap) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if t.Note != nil {
			t.Note(request)
		}
		resource := path.Base(request.URL.Path)
		if gate := t.gate(resource); gate != nil {
			select {
			case <-gate:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		response, err := next.RoundTrip(request)
		if err == nil && IsWatch(request) && response.StatusCode == http.StatusOK {
			t.add(resource, 1)
			response.Body = &stream{ReadCloser: response.Body, closed: sync.OnceFunc(func() { t.add(resource, -1) })}
		}
		return response, err
	})
}

// IsWatch reports whether a request is a watch.
func IsWatch(request *http.Request) bool { return request.URL.Query().Get("watch") == "true" }

func (t *Tap) gate(resource string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gates[resource]
}

func (t *Tap) add(resource string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[string]int{}
	}
	t.open[resource] += n
}

// Watches returns how many watches of a resource, such as "pods", are open.
func (t *Tap) Watches(resource string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[resource]
}

// Hold delays requests for a resource until the caller calls release.
func (t *Tap) Hold(resource string) (release func()) {
	gate := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gates == nil {
		t.gates = map[string]chan struct{}{}
	}
	t.gates[resource] = gate
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.gates, resource)
		close(gate)
	})
}

// stream is the body of a watch. It updates the tap's count when it is closed.
type stream struct {
	io.ReadCloser

	closed func()
}

func (s *stream) Close() error {
	s.closed()
	return s.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
