package simulator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// asked is what fault rules look at in a request.
type asked struct {
	method, path, app, body string
	base                    string // of the paths of operations
}

// target is an operation of a bulk request.
type target struct {
	verb verb
	path string // without /aai/vN
}

// operations returns the operations of a bulk request, as far as the body can be read.
func (a asked) operations() []target {
	if !strings.HasSuffix(a.path, "/"+bulkPath) {
		return nil
	}
	var envelope struct {
		Operations []bulkOperation `json:"operations"`
	}
	if json.Unmarshal([]byte(a.body), &envelope) != nil {
		return nil
	}
	list := make([]target, len(envelope.Operations))
	for i, op := range envelope.Operations {
		path, _, _ := strings.Cut(op.URI, "?")
		list[i] = target{bulkVerbs[op.Action].node, trimVersion(a.base, path)}
		if strings.HasSuffix(path, relationshipPath) {
			list[i].verb = bulkVerbs[op.Action].relationship
		}
	}
	return list
}

// hit is a rule that is applied to a request; the zero value is none.
type hit struct {
	Fault

	index   int // of the operation that fails; -1 for none
	failed  target
	cleared <-chan struct{} // closed when the rules are cleared
}

// rule is a Fault in force.
type rule struct {
	Fault

	paths, operations *regexp.Regexp // nil for any
	chance            *rand.Rand
	inFlight          int // requests that match and are not over, counted for Concurrent only
}

func newRule(f Fault) *rule {
	return &rule{
		Fault: f, paths: glob(f.Path), operations: glob(f.Operation),
		chance: rand.New(rand.NewPCG(f.Seed, 0)), //nolint:gosec // a dice that can be thrown again, no secret
	}
}

// glob makes an expression of a pattern with * and **; nil of an empty one.
func glob(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*\*`, `.*`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(quoted, `\*`, `[^/]*`) + `$`)
}

// matches reports whether a request is one that the rule is for, and which of its operations.
func (r *rule) matches(a asked) (index int, failed target, _ bool) {
	switch {
	case r.Method != "" && r.Method != a.method, r.FromAppID != "" && r.FromAppID != a.app,
		!strings.HasPrefix(a.path, r.PathPrefix), !strings.Contains(a.body, r.BodyContains),
		r.paths != nil && !r.paths.MatchString(a.path):
		return -1, target{}, false
	case r.operations == nil:
		return -1, target{}, true
	}
	list := a.operations()
	index = slices.IndexFunc(list, func(t target) bool { return r.operations.MatchString(t.path) })
	if index < 0 {
		return -1, target{}, false
	}
	return index, list[index], true
}

// due reports whether the rule hits the request that matches it now.
func (r *rule) due() bool {
	if r.inFlight < r.Concurrent {
		return false
	}
	if r.Skip > 0 {
		r.Skip--
		return false
	}
	return r.Probability == 0 || r.chance.Float64() < r.Probability
}

// faults is the list of rules in force.
type faults struct {
	mu      sync.Mutex // guards the rest
	rules   []*rule
	cleared chan struct{} // closed by clear, for requests that hang
}

// enter returns the rule that hits a request, and uses it up by one. The caller calls leave when the request is over.
func (f *faults) enter(a asked) (_ hit, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var counted []*rule
	for _, r := range f.rules {
		if r.Concurrent == 0 {
			continue
		}
		if _, _, ok := r.matches(a); ok {
			r.inFlight++
			counted = append(counted, r)
		}
	}
	leave = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, r := range counted {
			r.inFlight--
		}
	}
	for i, r := range f.rules {
		index, failed, ok := r.matches(a)
		if !ok || !r.due() {
			continue
		}
		if r.Count == 1 {
			f.rules = slices.Delete(f.rules, i, i+1)
		} else if r.Count > 1 {
			r.Count--
		}
		return hit{Fault: r.Fault, index: index, failed: failed, cleared: f.cleared}, leave
	}
	return hit{index: -1}, leave
}

// keepsPast reports whether a rule wants to show what has been.
func (f *faults) keepsPast() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.rules, func(r *rule) bool { return r.Stale > 0 })
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
	close(f.cleared)
	f.cleared = make(chan struct{})
}

// AddFaults puts rules behind those in force. When one is invalid none is added.
func (s *Simulator) AddFaults(rules ...Fault) error {
	added := make([]*rule, len(rules))
	for i, f := range rules {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("cannot add fault: %w", err)
		}
		added[i] = newRule(f)
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.rules = append(s.faults.rules, added...)
	return nil
}

// ClearFaults removes all rules. Connections that hang are closed.
func (s *Simulator) ClearFaults() { s.faults.clear() }

// Faults returns the rules in force, with what is left of Skip and Count.
func (s *Simulator) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	list := make([]Fault, len(s.faults.rules))
	for i, r := range s.faults.rules {
		list[i] = r.Fault
	}
	return list
}

// past is what the inventory was until a moment.
type past struct {
	until time.Time
	graph *graph
}

// maxPast bounds how many states of the inventory are remembered for Fault.Stale.
const maxPast = 100

// keepPast remembers the inventory before a write, if a rule may ask for it. The Simulator is locked.
func (s *Simulator) keepPast(now time.Time) {
	if !s.faults.keepsPast() {
		s.past = nil
		return
	}
	s.past = append(s.past, past{now, s.graph.clone()})
	s.past = s.past[max(0, len(s.past)-maxPast):]
}

// seen returns the inventory that a request reads. The Simulator is locked for reading.
func (s *Simulator) seen(q *request) *graph {
	if q.stale > 0 {
		then := s.Now().Add(-q.stale)
		for _, p := range s.past {
			if p.until.After(then) {
				return p.graph
			}
		}
	}
	return s.graph
}
