package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxControlBody bounds a body sent to the control surface; a state of a hundred thousand nodes fits.
const maxControlBody = 256 << 20

// route is one route of the control surface.
type route struct {
	pattern string // method and path, as http.ServeMux has them
	handler http.HandlerFunc
}

// routes lists the control surface.
func (s *Simulator) routes() []route {
	return []route{
		{"GET /__sim/requests", listSince(s.journal.since)},
		{"GET /__sim/events", listSince(s.Events)},
		{"GET /__sim/violations", show(s.Violations)},
		{"GET /__sim/state", show(s.State)},
		{"PUT /__sim/state", accept(func(fixtures []Fixture) error { return s.ReplaceState(fixtures...) })},
		{"POST /__sim/actor", accept(func(actions []Action) error { return s.Act(actions...) })},
		{"GET /__sim/faults", show(s.Faults)},
		{"POST /__sim/faults", accept(func(rules []Fault) error { return s.AddFaults(rules...) })},
		{"DELETE /__sim/faults", func(w http.ResponseWriter, _ *http.Request) {
			s.ClearFaults()
			w.WriteHeader(http.StatusNoContent)
		}},
		{"GET /__sim/clock", show(s.clockState)},
		{"POST /__sim/clock", accept(s.changeClock)},
		{"POST /__sim/restart", accept(func(r restart) error { return s.Restart(r.LoseLastWrite) })},
	}
}

// Control returns the handler of the control surface. Serve it on a listener of its own, so that no path of the API
// leads there; it has no authentication.
//
//	GET    /__sim/requests[?since=N]  the journal, or what came after sequence number N
//	GET    /__sim/events[?since=N]    what A&AI has published, or what came after sequence number N
//	GET    /__sim/violations          the log of strict mode
//	GET    /__sim/state               the inventory as [{"uri":..., "body":{...}}]
//	PUT    /__sim/state               replaces the inventory by such a list
//	POST   /__sim/actor               does a list of writes as somebody else: [{"action":..., "uri":..., "body":{...}}]
//	GET    /__sim/faults              the fault rules in force
//	POST   /__sim/faults              adds a list of rules
//	DELETE /__sim/faults              removes all rules
//	GET    /__sim/clock               the simulator's time: {"now":..., "same-ms":false}
//	POST   /__sim/clock               changes it: {"advance":"-5m", "same-ms":true}, each may be left out
//	POST   /__sim/restart             restarts the server: {"lose-last-write":true} or {}
//
// Answers are JSON; errors are text with status 400. A field that does not exist is an error.
func (s *Simulator) Control() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, r.handler)
	}
	return mux
}

// show makes a handler of something to be seen.
func show[T any](get func() T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeControl(w, get()) }
}

// listSince makes a handler of a log.
func listSince[T any](list func(since uint64) []T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var since uint64
		if text := r.URL.Query().Get("since"); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				http.Error(w, fmt.Sprintf("since %q is not a sequence number", text), http.StatusBadRequest)
				return
			}
			since = n
		}
		writeControl(w, list(since))
	}
}

// clockState is the time on the wire.
type clockState struct {
	Now    time.Time `json:"now"`
	SameMS bool      `json:"same-ms"`
}

func (s *Simulator) clockState() clockState {
	now, still := s.clock.now()
	return clockState{now, still}
}

// clockChange is what may be asked of the clock.
type clockChange struct {
	Advance string `json:"advance"`
	SameMS  *bool  `json:"same-ms"`
}

func (s *Simulator) changeClock(c clockChange) error {
	var d time.Duration
	if c.Advance != "" {
		var err error
		if d, err = time.ParseDuration(c.Advance); err != nil {
			return fmt.Errorf("cannot read advance %q: %w", c.Advance, err)
		}
	}
	if c.SameMS != nil {
		s.SameMillisecond(*c.SameMS)
	}
	s.AdvanceClock(d)
	return nil
}

// restart is what may be asked of a restart.
type restart struct {
	LoseLastWrite bool `json:"lose-last-write"`
}

// accept makes a handler of a function that takes a JSON value.
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

// decodeStrictly reads one JSON value: a mistyped field would otherwise be a rule or a node that does nothing.
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

// ReadFixtures reads a seed file: a JSON array of fixtures.
func ReadFixtures(r io.Reader) ([]Fixture, error) {
	return decodeStrictly[[]Fixture](r)
}

func writeControl(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "cannot encode answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // a client that has gone needs no answer
}
