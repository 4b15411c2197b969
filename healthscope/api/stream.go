package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// heartbeat is the interval at which a stream sends a comment, and checks whether the caller may still read it.
	heartbeat = 15 * time.Second
	// streamWriteTimeout is the time limit for a reader to receive an event before the stream ends.
	streamWriteTimeout = 10 * time.Second
	// drainWriteTimeout is the same while the server stops.
	drainWriteTimeout = time.Second
	// reconnectMillis is how long readers should wait before they connect again, in milliseconds.
	reconnectMillis = 2000
)

// Events of a stream.
const (
	// eventSnapshot holds the response of the path without watch. It is the first event.
	eventSnapshot = "snapshot"
	// eventScope holds a scope that is new or has changed: a ScopeItem in a stream of many scopes, a Scope in a stream of one.
	eventScope = "scope"
	// eventDeleted holds the ScopeName of a scope that does not exist any more, or is not selected any more.
	eventDeleted = "deleted"
	// eventProblem holds a Problem that ends the stream: the caller may not read it any more, or the current state of scopes is not known.
	eventProblem = "problem"
)

// changes is the set of scopes that have changed and have not been sent to a reader. It never has more entries than there are scopes.
type changes struct {
	wake chan struct{}

	mu    sync.Mutex
	names map[ScopeName]struct{}
}

func newChanges() *changes {
	return &changes{wake: make(chan struct{}, 1), names: map[ScopeName]struct{}{}}
}

func (c *changes) add(name ScopeName) {
	c.mu.Lock()
	c.names[name] = struct{}{}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// drain returns the changes, sorted, and clears them.
func (c *changes) drain() []ScopeName {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(c.names), ScopeName.compare)
	clear(c.names)
	return names
}

// stream sends a snapshot and then changes, until the caller goes away, reads too slowly or may not read any more, or the server stops.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, q *requestInfo) {
	closed, err := h.streams.open(q.caller.Name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer closed()
	// Subscribe before the snapshot, so that no change is lost in between.
	pending := newChanges()
	defer h.Scopes.Subscribe(func(namespace, name string) {
		if q.selection.covers(namespace, name) {
			pending.add(ScopeName{Namespace: namespace, Name: name})
		}
	})()
	first, err := h.takeSnapshot(r.Context(), q)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := newEvents(w)
	if r.Method == http.MethodHead {
		return
	}
	out.write([]byte(fmt.Sprintf("retry: %d\n\n", reconnectMillis)))
	out.snapshot(first)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for out.err == nil {
		// After the next heartbeat and the checks before it: over HTTP/2, an expired deadline ends a stream even when nothing is being written.
		// A deadline is always set; over HTTP/1 it bounds the end of the stream.
		out.setWriteDeadline(heartbeat + streamWriteTimeout)
		select {
		case <-r.Context().Done():
			return
		case <-draining(r.Context()):
			out.writeTimeout = drainWriteTimeout
			out.comment("the server stops; connect again")
			return
		case <-ticker.C:
			if err := cmp.Or(h.checkAllowed(r.Context(), q), h.checkCurrent()); err != nil {
				out.send(eventProblem, problemOf(err, r.URL))
				return
			}
			out.comment("heartbeat")
		case <-pending.wake:
			for _, name := range pending.drain() {
				h.sendScope(r.Context(), out, q.selection, name)
			}
		}
	}
}

// takeSnapshot makes the snapshot of a stream: the response of the path without watch.
func (h *handler) takeSnapshot(ctx context.Context, q *requestInfo) (response, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return q.route.respond(limited, q)
}

// checkAllowed returns an error when the caller may not read a stream any more. It returns nil while the Guard cannot decide.
func (h *handler) checkAllowed(ctx context.Context, q *requestInfo) error {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := h.authenticate(limited, q)
	if err == nil {
		err = h.authorize(limited, q)
	}
	if f, ok := errors.AsType[*statusError](err); ok && f.status < http.StatusInternalServerError {
		return err
	}
	return nil
}

// checkCurrent returns an error when the current state of scopes is not known, because readers take a silent stream for unchanged scopes.
func (h *handler) checkCurrent() error {
	if err := h.Current(); err != nil {
		return statusErrorf(http.StatusServiceUnavailable, "cannot say how HealthScopes are now: %w", err)
	}
	return nil
}

// openStreams counts the open streams. The zero value is ready to use; it is safe for concurrent use.
type openStreams struct {
	mu    sync.Mutex
	total int
	// byCaller counts those of callers with a token, by their names.
	byCaller map[string]int
}

// open counts one more stream of a caller, whose name is empty without a token, until the returned function is called. It returns an error
// when too many are open.
func (s *openStreams) open(caller string) (closed func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.total >= maxStreams:
		return nil, statusErrorf(http.StatusServiceUnavailable, "%w: %d streams are open already; try again, or ask without watch", ErrBusy, maxStreams)
	case caller != "" && s.byCaller[caller] >= maxStreamsOfOne:
		return nil, statusErrorf(http.StatusTooManyRequests, "%w: user %s has %d streams open already; close one, or ask without watch", ErrTooMany, quote(caller), maxStreamsOfOne)
	case s.byCaller == nil:
		s.byCaller = map[string]int{}
	}
	s.total++
	s.byCaller[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.byCaller[caller]--; s.byCaller[caller] == 0 {
			delete(s.byCaller, caller)
		}
	}, nil
}

// sendScope sends the current state of a scope to a reader, unless the reader has it.
func (h *handler) sendScope(ctx context.Context, out *events, about selection, name ScopeName) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	scope, err := h.Scopes.Get(limited, name.Namespace, name.Name)
	switch {
	case err != nil && !apierrors.IsNotFound(err): // The stream ends. The response to the next connection of the reader has the cause.
		out.err = err
		return
	case err != nil, !about.matches(scope.Labels, newScopeItem(scope)): // The scope is gone, or no longer selected.
		if _, known := out.sent[name]; known {
			delete(out.sent, name)
			out.send(eventDeleted, name)
		}
		return
	}
	var document any = newScopeItem(scope)
	if about.name != "" {
		document = NewScope(scope)
	}
	if out.record(name, document) {
		out.send(eventScope, document)
	}
}

// events writes server-sent events, as the HTML standard defines them. It writes nothing after an error.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
	// writeTimeout is the time limit for the reader to receive an event.
	writeTimeout time.Duration
	// sent holds the entity tag of the last document sent for each scope, so that the same document is not sent twice.
	sent map[ScopeName]string
}

// newEvents begins the response.
func newEvents(w http.ResponseWriter) *events {
	e := &events{w: w, control: http.NewResponseController(w), writeTimeout: streamWriteTimeout, sent: map[ScopeName]string{}}
	w.Header().Set("Content-Type", typeStream)
	w.WriteHeader(http.StatusOK)
	return e
}

// snapshot sends all scopes of the stream.
func (e *events) snapshot(a response) {
	var items []ScopeItem
	switch document := a.document.(type) {
	case ScopeList:
		items = document.Items
	case ScopePage:
		items = document.Items
	case Scope:
		e.record(document.scopeName(), document)
	}
	for _, item := range items {
		e.record(item.scopeName(), item)
	}
	e.send(eventSnapshot, a.document)
}

// record records the document that is sent for a scope, and reports whether it differs from the last one.
func (e *events) record(name ScopeName, document any) bool {
	body, _ := encode(document) // send returns the error.
	tag := etagOf(body)
	differs := e.sent[name] != tag
	e.sent[name] = tag
	return differs
}

// send sends an event. Its data are one line.
func (e *events) send(event string, document any) {
	body, err := encode(document)
	if err != nil {
		e.err = err
		return
	}
	e.write(slices.Concat([]byte("event: "+event+"\ndata: "), bytes.TrimSpace(body), []byte("\n\n")))
}

// comment sends a comment, which readers ignore.
func (e *events) comment(text string) { e.write([]byte(": " + text + "\n\n")) }

func (e *events) write(text []byte) {
	if e.err != nil {
		return
	}
	e.setWriteDeadline(e.writeTimeout)
	if _, e.err = e.w.Write(text); e.err == nil {
		e.err = e.control.Flush()
	}
}

// setWriteDeadline sets the write deadline. It ignores the error of a writer that is not a connection, which has no deadline.
func (e *events) setWriteDeadline(limit time.Duration) {
	_ = e.control.SetWriteDeadline(time.Now().Add(limit))
}

// drainKey is the key of a request's context for the channel that is closed when its server begins to stop.
type drainKey struct{}

// draining returns the channel of drainKey; nil, which is never closed, for a request of another server.
func draining(ctx context.Context) <-chan struct{} {
	stop, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return stop
}
