package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Request is one request to the A&AI API in the journal.
type Request struct {
	// Sequence is the number of the request, from 1, in the order in which answers were ready.
	Sequence uint64 `json:"sequence"`
	// Time is when the request arrived, by Options.Clock.
	Time time.Time `json:"time"`
	// Method is the HTTP method as sent; a POST with X-HTTP-Method-Override: PATCH stays a POST here.
	Method string `json:"method"`
	// Path is the percent-encoded path, with /aai/vN.
	Path string `json:"path"`
	// Query is the raw query string.
	Query string `json:"query,omitempty"`
	// Header holds the request headers, with credentials redacted.
	Header http.Header `json:"header"`
	// Body is the request body.
	Body string `json:"body,omitempty"`
	// Status is the HTTP status of the answer, 0 when a fault dropped the connection instead.
	Status int `json:"status"`
}

// maxJournal is how many requests the journal remembers.
const maxJournal = 10_000

// record adds the request to the journal.
func (x *exchange) record(status int) {
	header := x.r.Header.Clone()
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		if header.Get(name) != "" {
			header.Set(name, "REDACTED")
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sequence++
	x.journal = append(x.journal, Request{
		x.sequence, x.receivedAt, x.r.Method, x.r.URL.EscapedPath(), x.r.URL.RawQuery, header, string(x.body), status,
	})
	x.journal = x.journal[max(0, len(x.journal)-maxJournal):]
}

// Requests returns the requests that the journal remembers, the last 10,000, oldest first. A request is in it before its answer
// is sent.
func (s *Simulator) Requests() []Request { return s.requestsSince(0) }

// requestsSince returns the requests with a greater sequence number.
func (s *Simulator) requestsSince(sequence uint64) []Request {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first := slices.IndexFunc(s.journal, func(r Request) bool { return r.Sequence > sequence })
	if first < 0 {
		return []Request{}
	}
	return slices.Clone(s.journal[first:])
}

// Action is a write of another program than the client under test. It needs no credentials and no resource-version, meets no
// faults, and is in no journal.
type Action struct {
	// Action is put, patch or delete.
	Action string `json:"action"`
	// URI is the path of a node, or of its relationship-list/relationship, with or without /aai/vN.
	URI string `json:"uri"`
	// Body is the document, the merge patch or the relationship. The deletion of a node needs none.
	Body map[string]any `json:"body,omitempty"`
}

// Act applies writes as another program, in order. It returns at the first that A&AI rejects, and does not undo those before it.
func (s *Simulator) Act(actions ...Action) error {
	for i, a := range actions {
		if err := s.act(a); err != nil {
			return fmt.Errorf("cannot do action %d, %s %q: %w", i, a.Action, a.URI, err)
		}
	}
	return nil
}

func (s *Simulator) act(a Action) error {
	raw, err := json.Marshal(a.Body)
	if err != nil {
		return fmt.Errorf("cannot encode body: %w", err)
	}
	if a.Body == nil {
		raw = []byte("{}")
	}
	entry := bulkOperation{Action: a.Action, URI: a.URI, Body: raw}
	if !entry.hasValidAction() {
		return fmt.Errorf("action %q is not put, patch or delete", a.Action)
	}
	q := &request{schema: s.newest()}
	op, refused := entry.operation(q)
	if refused != nil {
		return refused
	}
	refused = s.transact(q.schema, func(t *tx) *apiError {
		if n := t.nodes[op.place.uri]; n != nil {
			op.version = n.version
			if op.doc != nil {
				op.doc.version = n.version
			}
		}
		_, err := t.apply(q, op)
		return err
	})
	if refused != nil {
		return refused
	}
	return nil
}

// maxControlBody bounds a body sent to the control surface. A state of a hundred thousand nodes fits.
const maxControlBody = 256 << 20

// routes returns the handlers of the control surface by pattern.
func (s *Simulator) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /__sim/requests":   s.showRequests,
		"GET /__sim/violations": show(s.Violations),
		"GET /__sim/state":      show(s.State),
		"PUT /__sim/state":      accept(func(fixtures []Fixture) error { return s.ReplaceState(fixtures...) }),
		"POST /__sim/actor":     accept(func(actions []Action) error { return s.Act(actions...) }),
		"GET /__sim/faults":     show(s.Faults),
		"POST /__sim/faults":    accept(func(rules []Fault) error { return s.AddFaults(rules...) }),
		"DELETE /__sim/faults": func(w http.ResponseWriter, _ *http.Request) {
			s.ClearFaults()
			w.WriteHeader(http.StatusNoContent)
		},
		"POST /__sim/restart": accept(func(r restart) error { return s.Restart(r.LoseLastWrite) }),
	}
}

// Control returns the handler of the control surface. Serve it on a listener of its own, so that no path of the API leads
// there; it has no authentication.
//
//	GET    /__sim/requests[?since=N]  the journal, or what came after sequence number N
//	GET    /__sim/violations          the log of strict mode
//	GET    /__sim/state               the inventory as [{"uri":..., "body":{...}}]
//	PUT    /__sim/state               replaces the inventory by such a list
//	POST   /__sim/actor               does a list of writes as another program: [{"action":..., "uri":..., "body":{...}}]
//	GET    /__sim/faults              the fault rules in force
//	POST   /__sim/faults              adds a list of rules
//	DELETE /__sim/faults              removes all rules
//	POST   /__sim/restart             restarts the server: {"lose-last-write":true} or {}
//
// Answers are JSON; errors are text with status 400. An unknown field is an error.
func (s *Simulator) Control() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range s.routes() {
		mux.HandleFunc(pattern, handler)
	}
	return mux
}

func (s *Simulator) showRequests(w http.ResponseWriter, r *http.Request) {
	var since uint64
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = strconv.ParseUint(text, 10, 64); err != nil {
			http.Error(w, fmt.Sprintf("since %q is not a sequence number", text), http.StatusBadRequest)
			return
		}
	}
	writeControl(w, s.requestsSince(since))
}

// restart is the body of POST /__sim/restart.
type restart struct {
	LoseLastWrite bool `json:"lose-last-write"`
}

// show returns a handler that answers with the value of get.
func show[T any](get func() T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeControl(w, get()) }
}

// accept returns a handler that decodes a JSON value and passes it to take.
func accept[T any](take func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := decodeStrictly[T](http.MaxBytesReader(w, r.Body, maxControlBody))
		if err == nil {
			err = take(value)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// decodeStrictly decodes one JSON value. It rejects unknown fields: a rule or node with a misspelt one would have no effect.
func decodeStrictly[T any](r io.Reader) (T, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber()
	var value T
	if err := d.Decode(&value); err != nil {
		return value, fmt.Errorf("cannot read body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return value, errors.New("cannot read body: more data follows it")
	}
	return value, nil
}

func writeControl(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "cannot encode answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
