package faults

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// watchBody is the body of a watch: events, one per line, until it ends or expires.
type watchBody struct {
	*io.PipeReader

	path     string
	upstream io.Closer
	out      *io.PipeWriter
	// inJSON is false if the events have another encoding. No event can be inserted into such a watch.
	inJSON bool
	// mu prevents the insertion of an event into the middle of another one.
	mu sync.Mutex
	// ended is called once, when the watch is over.
	ended func()
}

// watch returns a watchBody that replaces the body of a response.
func (p *Proxy) watch(r *http.Response) *watchBody {
	in, out := io.Pipe()
	w := &watchBody{
		PipeReader: in, path: r.Request.URL.Path, upstream: r.Body, out: out,
		inJSON: strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"),
	}
	w.ended = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
	}
	p.mu.Lock()
	p.watches[w] = struct{}{}
	p.mu.Unlock()
	go w.copy(r.Body)
	return w
}

// copy forwards events until the watch ends, or its reader is closed.
func (w *watchBody) copy(from io.Reader) {
	defer w.ended()
	events := bufio.NewReader(from)
	buffer := make([]byte, 32<<10)
	for {
		var event []byte
		var err error
		if w.inJSON {
			event, err = events.ReadBytes('\n')
		} else {
			var n int
			n, err = events.Read(buffer)
			event = buffer[:n]
		}
		w.mu.Lock()
		_, writeErr := w.out.Write(event)
		w.mu.Unlock()
		if err != nil || writeErr != nil {
			_ = w.out.CloseWithError(err)
			return
		}
	}
}

// expire ends the watch, in JSON after an event with 410 Expired.
func (w *watchBody) expire() {
	w.mu.Lock()
	if w.inJSON {
		event, err := json.Marshal(metav1.WatchEvent{Type: string(apiwatch.Error), Object: runtime.RawExtension{Object: failure(http.StatusGone)}})
		if err == nil {
			_, _ = w.out.Write(append(event, '\n'))
		}
	}
	_ = w.out.Close()
	w.mu.Unlock()
	_ = w.upstream.Close()
}

// Close ends the watch when the client has disconnected.
func (w *watchBody) Close() error {
	_ = w.PipeReader.Close()
	return w.upstream.Close()
}

// failure returns the Status that an API server sends with an HTTP status.
func failure(status int) *metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonExpired,
		http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(status), Reason: reasons[status],
		Message: "refused by the fault proxy: " + http.StatusText(status),
	}
}

// writeStatus responds to a request with a failure.
func writeStatus(w http.ResponseWriter, status int) {
	body, err := json.Marshal(failure(status))
	if err != nil {
		panic(http.ErrAbortHandler) // A Status can always be encoded.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
