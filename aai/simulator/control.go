package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxControlBody bounds a body sent to the control surface; a state of a hundred thousand nodes fits.
const maxControlBody = 256 << 20

// Control returns the handler of the control surface. Serve it on a listener of its own, so that no path of the API
// leads there; it has no authentication.
//
//	GET    /__sim/requests[?since=N]  the journal, or what came after sequence number N
//	GET    /__sim/violations          the log of strict mode
//	GET    /__sim/state               the inventory as [{"uri":..., "body":{...}}]
//	PUT    /__sim/state               replaces the inventory by such a list
//	GET    /__sim/faults              the fault rules in force
//	POST   /__sim/faults              adds a list of rules
//	DELETE /__sim/faults              removes all rules
//
// Answers are JSON; errors are text with status 400.
func (s *Simulator) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /__sim/requests", s.controlRequests)
	mux.HandleFunc("GET /__sim/violations", func(w http.ResponseWriter, _ *http.Request) { writeControl(w, s.Violations()) })
	mux.HandleFunc("GET /__sim/state", func(w http.ResponseWriter, _ *http.Request) { writeControl(w, s.State()) })
	mux.HandleFunc("PUT /__sim/state", accept(func(fixtures []Fixture) error { return s.ReplaceState(fixtures...) }))
	mux.HandleFunc("GET /__sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeControl(w, s.Faults()) })
	mux.HandleFunc("POST /__sim/faults", accept(func(rules []Fault) error { return s.AddFaults(rules...) }))
	mux.HandleFunc("DELETE /__sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (s *Simulator) controlRequests(w http.ResponseWriter, r *http.Request) {
	var since uint64
	if text := r.URL.Query().Get("since"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			http.Error(w, fmt.Sprintf("since %q is not a sequence number", text), http.StatusBadRequest)
			return
		}
		since = n
	}
	writeControl(w, s.journal.since(since))
}

// accept makes a handler of a function that takes a JSON list.
func accept[T any](take func([]T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		list, err := decodeList[T](http.MaxBytesReader(w, r.Body, maxControlBody))
		if err == nil {
			err = take(list)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// decodeList reads one JSON array strictly: a mistyped field would otherwise be a rule or a node that does nothing.
func decodeList[T any](r io.Reader) ([]T, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber()
	var list []T
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("cannot read list: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot read list: more data follows it")
	}
	return list, nil
}

// ReadFixtures reads a seed file: a JSON array of fixtures.
func ReadFixtures(r io.Reader) ([]Fixture, error) {
	return decodeList[Fixture](r)
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
