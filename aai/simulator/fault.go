package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Drop says when a fault ends the connection instead of answering in full.
type Drop string

// The values of Fault.Drop.
const (
	// DropNever lets the answer through.
	DropNever Drop = ""
	// DropBeforeCommit is before the request is looked at: nothing was done.
	DropBeforeCommit Drop = "before-commit"
	// DropAfterCommit is when the request is done: stored but never acknowledged.
	DropAfterCommit Drop = "after-commit"
	// DropMidBody is when the request is done, and status, headers and half of the body are sent. An answer that can have no
	// body is not sent at all.
	DropMidBody Drop = "mid-body"
)

// Manner says how a fault ends the connection.
type Manner string

// The values of Fault.Manner.
const (
	// MannerClose closes it.
	MannerClose Manner = ""
	// MannerReset closes it with a TCP RST. Over HTTP/2, and where there is no connection, it is like MannerClose.
	MannerReset Manner = "reset"
	// MannerHang keeps it open and silent until the client goes, ClearFaults or Restart is called, or the server ends.
	MannerHang Manner = "hang"
)

// Fault is a rule for making requests fail: which requests, how often, and what happens to them. All conditions must hold. The
// first rule that hits a request is applied, no other.
type Fault struct {
	// Method is the HTTP method. Default: any.
	Method string `json:"method,omitempty"`
	// PathPrefix is what the percent-encoded path starts with, /aai/vN included. Default: any path.
	PathPrefix string `json:"path-prefix,omitempty"`
	// Path is a pattern for the percent-encoded path, /aai/vN included: * stands for anything but a slash, ** for anything.
	// Default: any path.
	Path string `json:"path,omitempty"`
	// FromAppID is the value of the header X-FromAppId. Default: any.
	FromAppID string `json:"from-app-id,omitempty"`
	// BodyContains is a part of the request body. Default: any body.
	BodyContains string `json:"body-contains,omitempty"`
	// Operation is a pattern like Path for bulk requests: one of the operations has a matching path, without /aai/vN. A Code is
	// then answered as the failure of that operation. Default: any request.
	Operation string `json:"operation,omitempty"`
	// Concurrent is how many requests that match, this one included, must be under way. Default: 1.
	Concurrent int `json:"concurrent,omitempty"`

	// Skip is how many requests pass before the rule hits its first. Default: 0.
	Skip int `json:"skip,omitempty"`
	// Count is how many requests the rule hits before it is used up. Default: all until ClearFaults.
	Count int `json:"count,omitempty"`
	// Probability is that of a hit, above 0 and at most 1. Default: 1.
	Probability float64 `json:"probability,omitempty"`
	// Seed makes the hits of Probability others; with the same seed they are the same. Default: 0.
	Seed uint64 `json:"seed,omitempty"`

	// Delay is how long the request waits before anything else happens. On the wire a Go duration like "250ms". Default: not
	// at all.
	Delay time.Duration `json:"-"`
	// Stale is how old the inventory is that a GET sees, by Options.Clock. It knows of changes that were made while the
	// rule was in force, at most the last 100. On the wire a Go duration. Default: no.
	Stale time.Duration `json:"-"`
	// Status is answered instead of looking at the request, with an HTML page as a proxy sends it. Default: no.
	Status int `json:"status,omitempty"`
	// Body is sent with Status as JSON, in place of the HTML page. Default: none.
	Body string `json:"body,omitempty"`
	// Location is the header of that name, for a Status from 300 to 399. Default: none.
	Location string `json:"location,omitempty"`
	// Code is an error of A&AI's own to answer, like AAI_7406, with its body and status. Default: none. Not together with Status.
	Code string `json:"code,omitempty"`
	// RetryAfter is the header Retry-After of the answer: seconds or an HTTP date. Default: none.
	RetryAfter string `json:"retry-after,omitempty"`
	// Empty leaves the body of the answer out.
	Empty bool `json:"empty,omitempty"`
	// XML makes the answer XML, whatever the request accepts. It is the same document for all requests.
	XML bool `json:"xml,omitempty"`
	// Gzip compresses the body of the answer, whatever the request accepts.
	Gzip bool `json:"gzip,omitempty"`
	// Truncate cuts the body of the answer in half, after the request is done.
	Truncate bool `json:"truncate,omitempty"`
	// WrongLength announces a body twice as long as the one that follows, and closes the connection after it.
	WrongLength bool `json:"wrong-length,omitempty"`
	// Drip is the pause before each byte of the answer's body. On the wire a Go duration. Default: none.
	Drip time.Duration `json:"-"`
	// Drop ends the connection instead of answering in full. Default: DropNever. Not together with Status or Code, but for
	// DropMidBody.
	Drop Drop `json:"drop,omitempty"`
	// Manner is how Drop ends the connection. Default: MannerClose.
	Manner Manner `json:"manner,omitempty"`
}

// faultFields is Fault without its methods, to avoid recursion in MarshalJSON.
type faultFields Fault

// faultJSON is Fault on the wire, with durations as people write them.
type faultJSON struct {
	faultFields

	Delay string `json:"delay,omitempty"`
	Stale string `json:"stale,omitempty"`
	Drip  string `json:"drip,omitempty"`
}

// MarshalJSON writes durations as Go does, like "1m30s".
func (f Fault) MarshalJSON() ([]byte, error) {
	text := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return json.Marshal(faultJSON{faultFields(f), text(f.Delay), text(f.Stale), text(f.Drip)})
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown field is an error: a misspelt path-prefix would hit every path.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var wire faultJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire); err != nil {
		return err
	}
	read := Fault(wire.faultFields)
	for _, one := range []struct {
		text string
		into *time.Duration
	}{{wire.Delay, &read.Delay}, {wire.Stale, &read.Stale}, {wire.Drip, &read.Drip}} {
		var err error
		if one.text == "" {
			continue
		}
		if *one.into, err = time.ParseDuration(one.text); err != nil {
			return fmt.Errorf("cannot read duration %q: %w", one.text, err)
		}
	}
	*f = read
	return nil
}

// Validate returns an error if the rule is invalid.
func (f Fault) Validate() error {
	dropped := f.Drop == DropBeforeCommit || f.Drop == DropAfterCommit
	cuts := 0
	for _, cut := range []bool{f.Empty, f.Truncate, f.WrongLength, f.Drop != DropNever} {
		if cut {
			cuts++
		}
	}
	for _, problem := range []struct {
		found bool
		text  string
	}{
		{f.Count < 0, fmt.Sprintf("count %d is negative", f.Count)},
		{f.Skip < 0, fmt.Sprintf("skip %d is negative", f.Skip)},
		{f.Concurrent < 0, fmt.Sprintf("concurrent %d is negative", f.Concurrent)},
		{f.Delay < 0, fmt.Sprintf("delay %s is negative", f.Delay)},
		{f.Stale < 0, fmt.Sprintf("stale %s is negative", f.Stale)},
		{f.Drip < 0, fmt.Sprintf("drip %s is negative", f.Drip)},
		{!(f.Probability >= 0 && f.Probability <= 1), fmt.Sprintf("probability %v is not from 0 to 1", f.Probability)}, // NaN fails, too
		{f.Status != 0 && (f.Status < 200 || f.Status > 599), fmt.Sprintf("status %d is not an HTTP status from 200 to 599", f.Status)},
		{f.Status != 0 && dropped, fmt.Sprintf("status %d and drop %q exclude each other", f.Status, f.Drop)},
		{f.Body != "" && f.Status == 0, "body needs a status"},
		{(f.Location != "") != (f.Status/100 == 3), "a location and a status from 300 to 399 need each other"},
		{f.Code != "" && errorSpecs[f.Code] == nil, fmt.Sprintf("code %q is not an error that A&AI has here", f.Code)},
		{f.Code != "" && (f.Status != 0 || dropped), fmt.Sprintf("code %q excludes status and drop", f.Code)},
		{!slices.Contains([]Drop{DropNever, DropBeforeCommit, DropAfterCommit, DropMidBody}, f.Drop), fmt.Sprintf("drop %q is unknown", f.Drop)},
		{!slices.Contains([]Manner{MannerClose, MannerReset, MannerHang}, f.Manner), fmt.Sprintf("manner %q is unknown", f.Manner)},
		{f.Manner != MannerClose && f.Drop == DropNever, fmt.Sprintf("manner %q needs a drop", f.Manner)},
		{cuts > 1, fmt.Sprintf("empty, truncate, wrong-length and drop %q exclude each other", f.Drop)},
	} {
		if problem.found {
			return errors.New(problem.text)
		}
	}
	return nil
}

// rule is a Fault in force.
type rule struct {
	Fault

	paths, operations *regexp.Regexp // nil for any
	rng               *rand.Rand
	inFlight          int // matching requests in flight
}

// glob returns a regular expression for a pattern with * and **; nil for an empty one.
func glob(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*\*`, `.*`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(quoted, `\*`, `[^/]*`) + `$`)
}

// noOperation stands for none of the operations of a bulk request.
const noOperation = -1

// matches reports whether the rule matches a request, and which operation of a bulk request.
func (r *rule) matches(x *exchange) (operation int, ok bool) {
	path := x.r.URL.EscapedPath()
	switch {
	case r.Method != "" && r.Method != x.r.Method, r.FromAppID != "" && r.FromAppID != x.r.Header.Get("X-FromAppId"),
		!strings.HasPrefix(path, r.PathPrefix), !bytes.Contains(x.body, []byte(r.BodyContains)),
		r.paths != nil && !r.paths.MatchString(path):
		return noOperation, false
	case r.operations == nil:
		return noOperation, true
	}
	operation = slices.IndexFunc(x.operations(), func(a bulkOperation) bool {
		_, path, _ := a.split()
		return r.operations.MatchString(path)
	})
	return operation, operation != noOperation
}

// operations returns the operations of a bulk request; nil if it is another request or its body is invalid.
func (x *exchange) operations() []bulkOperation {
	var parsed bulkBody
	if !strings.HasSuffix(x.r.URL.EscapedPath(), "/"+bulkPath) || json.Unmarshal(x.body, &parsed) != nil {
		return nil
	}
	return parsed.Operations
}

// hits reports whether the rule hits the current request, which matches it, and counts down Skip.
func (r *rule) hits() bool {
	if r.inFlight < r.Concurrent {
		return false
	}
	if r.Skip > 0 {
		r.Skip--
		return false
	}
	return r.Probability == 0 || r.rng.Float64() < r.Probability
}

// selectFault selects the rule that hits a request, and counts down its Count. The caller calls release when the request is over.
func (x *exchange) selectFault() (release func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cleared, x.restarted, x.operation = x.Simulator.cleared, x.Simulator.restarted, noOperation
	matching := map[*rule]int{} // with the operation
	for _, r := range x.rules {
		if operation, ok := r.matches(x); ok {
			matching[r] = operation
			r.inFlight++
		}
	}
	for i, r := range x.rules {
		operation, ok := matching[r]
		if !ok || !r.hits() {
			continue
		}
		if r.Count == 1 {
			x.rules = slices.Delete(slices.Clone(x.rules), i, i+1)
		} else if r.Count > 1 {
			r.Count--
		}
		x.fault, x.operation = r.Fault, operation
		break
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for r := range maps.Keys(matching) {
			r.inFlight--
		}
	}
}

// AddFaults appends rules to those in force. If one is invalid, it adds none.
func (s *Simulator) AddFaults(rules ...Fault) error {
	var added []*rule
	for _, f := range rules {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("cannot add fault: %w", err)
		}
		rng := rand.New(rand.NewPCG(f.Seed, 0)) //nolint:gosec // reproducible, and no secret
		added = append(added, &rule{Fault: f, paths: glob(f.Path), operations: glob(f.Operation), rng: rng})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, added...)
	return nil
}

// ClearFaults removes all rules. Connections that hang are closed.
func (s *Simulator) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
	close(s.cleared)
	s.cleared = make(chan struct{})
}

// Faults returns the rules in force, with what is left of Skip and Count.
func (s *Simulator) Faults() []Fault {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]Fault, len(s.rules))
	for i, r := range s.rules {
		list[i] = r.Fault
	}
	return list
}

// snapshot is the state of the inventory until a time.
type snapshot struct {
	until time.Time
	nodes map[string]*node
}

// maxSnapshots bounds the number of snapshots for Fault.Stale.
const maxSnapshots = 100

// takeSnapshot stores the inventory before a write, if a rule has Stale set. The caller holds the lock.
func (s *Simulator) takeSnapshot() {
	if !slices.ContainsFunc(s.rules, func(r *rule) bool { return r.Stale > 0 }) {
		s.snapshots = nil
		return
	}
	s.snapshots = append(s.snapshots, snapshot{s.now(), maps.Clone(s.inventory.nodes)})
	s.snapshots = s.snapshots[max(0, len(s.snapshots)-maxSnapshots):]
}

// inventoryFor returns the inventory that a request reads. The caller holds the lock.
func (s *Simulator) inventoryFor(q *request) *inventory {
	then := s.now().Add(-q.stale)
	for _, p := range s.snapshots {
		if q.stale > 0 && p.until.After(then) {
			return &inventory{nodes: p.nodes}
		}
	}
	return s.inventory
}

// faultReply returns the answer of the fault, and whether it replaces that of A&AI.
func (x *exchange) faultReply(q *request) (reply, bool) {
	switch {
	case x.fault.Status != 0:
		rep := statusPage(x.fault.Status)
		if x.fault.Body != "" {
			rep = reply{x.fault.Status, http.Header{"Content-Type": {jsonType}}, []byte(x.fault.Body)}
		}
		if x.fault.Location != "" {
			rep.header.Set("Location", x.fault.Location)
		}
		return rep, true
	case x.fault.Code == "":
		return reply{}, false
	}
	_ = x.checkVersion(q) // for the path and the version that the error quotes; a fault needs no valid request
	err := newAPIError(errorSpecs[x.fault.Code], "by a fault rule")
	if x.operation != noOperation {
		v, path, _ := x.operations()[x.operation].split()
		return bulkFailure(q, x.operation, err.forRequest(string(v), path)), true
	}
	return err.forRequest(q.method, q.path).reply(), true
}
