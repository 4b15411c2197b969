package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Drop says when a fault closes the connection instead of answering.
type Drop string

// The values of Fault.Drop.
const (
	// DropNever lets the answer through.
	DropNever Drop = ""
	// DropBeforeCommit closes before the request is looked at: nothing was done.
	DropBeforeCommit Drop = "before-commit"
	// DropAfterCommit closes when the request is done: applied but never acknowledged.
	DropAfterCommit Drop = "after-commit"
)

// Fault is a rule for making requests fail. The first rule that matches a request is applied, no other.
type Fault struct {
	// Method is the HTTP method concerned. Default: any.
	Method string
	// PathPrefix is what the percent-encoded path starts with, /aai/vN included. Default: any path.
	PathPrefix string
	// Count is how many requests the rule hits before it is used up. Default: all until ClearFaults.
	Count int
	// Delay is how long the request waits before anything else happens. Default: not at all.
	Delay time.Duration
	// Status is answered instead of looking at the request, with an HTML body as a proxy sends it. Default: no.
	Status int
	// Drop closes the connection instead of answering. Default: DropNever. Not together with Status.
	Drop Drop
}

// faultJSON is Fault on the wire; the delay is a Go duration like "250ms".
type faultJSON struct {
	Method     string `json:"method,omitempty"`
	PathPrefix string `json:"path-prefix,omitempty"`
	Count      int    `json:"count,omitempty"`
	Delay      string `json:"delay,omitempty"`
	Status     int    `json:"status,omitempty"`
	Drop       Drop   `json:"drop,omitempty"`
}

// MarshalJSON writes the delay as a Go duration.
func (f Fault) MarshalJSON() ([]byte, error) {
	wire := faultJSON{Method: f.Method, PathPrefix: f.PathPrefix, Count: f.Count, Status: f.Status, Drop: f.Drop}
	if f.Delay != 0 {
		wire.Delay = f.Delay.String()
	}
	return json.Marshal(wire)
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown field is an error: a mistyped path-prefix would hit every path.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var wire faultJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire); err != nil {
		return err
	}
	*f = Fault{Method: wire.Method, PathPrefix: wire.PathPrefix, Count: wire.Count, Status: wire.Status, Drop: wire.Drop}
	if wire.Delay == "" {
		return nil
	}
	delay, err := time.ParseDuration(wire.Delay)
	if err != nil {
		return fmt.Errorf("cannot read delay %q: %w", wire.Delay, err)
	}
	f.Delay = delay
	return nil
}

// Validate reports what is wrong with the rule.
func (f Fault) Validate() error {
	switch {
	case f.Count < 0:
		return fmt.Errorf("count %d is negative", f.Count)
	case f.Delay < 0:
		return fmt.Errorf("delay %s is negative", f.Delay)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d is not an HTTP status from 200 to 599", f.Status)
	case !slices.Contains([]Drop{DropNever, DropBeforeCommit, DropAfterCommit}, f.Drop):
		return fmt.Errorf("drop %q is neither %q nor %q", f.Drop, DropBeforeCommit, DropAfterCommit)
	case f.Status != 0 && f.Drop != DropNever:
		return fmt.Errorf("status %d and drop %q exclude each other", f.Status, f.Drop)
	}
	return nil
}

func (f Fault) matches(method, path string) bool {
	return (f.Method == "" || f.Method == method) && strings.HasPrefix(path, f.PathPrefix)
}

// wait sleeps for the delay and reports whether the client is still there.
func (f Fault) wait(ctx context.Context) bool {
	if f.Delay == 0 {
		return true
	}
	timer := time.NewTimer(f.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// faults is the list of rules in force.
type faults struct {
	mu    sync.Mutex // guards rules
	rules []Fault
}

// take returns the rule for a request and uses it up by one; the zero Fault when there is none.
func (f *faults) take(method, path string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.rules, func(rule Fault) bool { return rule.matches(method, path) })
	if i < 0 {
		return Fault{}
	}
	rule := f.rules[i]
	if rule.Count == 1 {
		f.rules = slices.Delete(f.rules, i, i+1)
	} else if rule.Count > 1 {
		f.rules[i].Count--
	}
	return rule
}

// AddFaults puts rules behind those in force. When one is invalid none is added.
func (s *Simulator) AddFaults(rules ...Fault) error {
	for _, rule := range rules {
		if err := rule.Validate(); err != nil {
			return fmt.Errorf("cannot add fault: %w", err)
		}
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.rules = append(s.faults.rules, rules...)
	return nil
}

// ClearFaults removes all rules.
func (s *Simulator) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.rules = nil
}

// Faults returns the rules in force, with the counts that are left.
func (s *Simulator) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return append([]Fault{}, s.faults.rules...)
}
