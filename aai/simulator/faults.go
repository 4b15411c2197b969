package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
	// DropAfterCommit is when the request is done: applied but never acknowledged.
	DropAfterCommit Drop = "after-commit"
	// DropMidBody is when the request is done, and status, headers and half of the body are sent. An answer that can have
	// no body is not sent at all.
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

// Fault is a rule for making requests fail: which requests, how often, and what happens to them. All conditions must
// hold. The first rule that hits a request is applied, no other.
type Fault struct {
	// Method is the HTTP method concerned. Default: any.
	Method string `json:"method,omitempty"`
	// PathPrefix is what the percent-encoded path starts with, /aai/vN included. Default: any path.
	PathPrefix string `json:"path-prefix,omitempty"`
	// Path is a pattern for the percent-encoded path, /aai/vN included: * stands for anything but a slash, ** for
	// anything. Default: any path.
	Path string `json:"path,omitempty"`
	// FromAppID is the value of the header X-FromAppId. Default: any.
	FromAppID string `json:"from-app-id,omitempty"`
	// BodyContains is what the request body holds. Default: any body.
	BodyContains string `json:"body-contains,omitempty"`
	// Operation is a pattern like Path for bulk requests: one of the operations has a matching path, without /aai/vN. A
	// Code is then answered as the failure of that operation. Default: any request.
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

	// Delay is how long the request waits before anything else happens. A GET that would wait longer than
	// Options.ReadTimeout is answered AAI_7406 then. On the wire a Go duration like "250ms". Default: not at all.
	Delay time.Duration `json:"-"`
	// Stale is how old the inventory is that a GET sees, by the simulator's clock. It knows of changes that were made
	// while the rule was in force, at most the last 100. On the wire a Go duration. Default: no.
	Stale time.Duration `json:"-"`
	// Status is answered instead of looking at the request, with an HTML body as a proxy sends it. Default: no.
	Status int `json:"status,omitempty"`
	// Location is the header of that name, for a Status from 300 to 399. Default: none.
	Location string `json:"location,omitempty"`
	// Code is an error of A&AI's own to answer, like AAI_7406, with the body and the status that belong to it. Default: none. Not together with Status.
	Code string `json:"code,omitempty"`
	// RetryAfter is the value of the header Retry-After of the answer: seconds or an HTTP date. Default: none.
	RetryAfter string `json:"retry-after,omitempty"`
	// Empty leaves the body of the answer out.
	Empty bool `json:"empty,omitempty"`
	// XML makes the answer XML, whatever the request accepts.
	XML bool `json:"xml,omitempty"`
	// Gzip compresses the body of the answer, whatever the request accepts.
	Gzip bool `json:"gzip,omitempty"`
	// Truncate cuts the body of the answer in half, after the request is done.
	Truncate bool `json:"truncate,omitempty"`
	// WrongLength announces a body twice as long as the one that follows, and closes the connection after it.
	WrongLength bool `json:"wrong-length,omitempty"`
	// Drip is the pause before each byte of the answer's body. On the wire a Go duration. Default: none.
	Drip time.Duration `json:"-"`
	// Drop ends the connection instead of answering in full. Default: DropNever. Not together with Status or Code,
	// but for DropMidBody.
	Drop Drop `json:"drop,omitempty"`
	// Manner is how Drop ends the connection. Default: MannerClose.
	Manner Manner `json:"manner,omitempty"`
}

// plainFault is Fault without its methods.
type plainFault Fault

// faultJSON is Fault on the wire, with durations as people write them.
type faultJSON struct {
	plainFault

	Delay string `json:"delay,omitempty"`
	Stale string `json:"stale,omitempty"`
	Drip  string `json:"drip,omitempty"`
}

// MarshalJSON writes durations as Go does, like "1m30s".
func (f Fault) MarshalJSON() ([]byte, error) {
	wire := faultJSON{plainFault: plainFault(f)}
	for _, d := range f.durations(&wire) {
		if *d.value != 0 {
			*d.text = d.value.String()
		}
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
	read := Fault(wire.plainFault)
	for _, d := range read.durations(&wire) {
		if *d.text == "" {
			continue
		}
		value, err := time.ParseDuration(*d.text)
		if err != nil {
			return fmt.Errorf("cannot read %s %q: %w", d.name, *d.text, err)
		}
		*d.value = value
	}
	*f = read
	return nil
}

type faultDuration struct {
	name  string
	value *time.Duration
	text  *string
}

func (f *Fault) durations(wire *faultJSON) []faultDuration {
	return []faultDuration{
		{"delay", &f.Delay, &wire.Delay}, {"stale", &f.Stale, &wire.Stale}, {"drip", &f.Drip, &wire.Drip},
	}
}

// Validate reports what is wrong with the rule.
func (f Fault) Validate() error {
	for _, check := range []func() error{f.checkNumbers, f.checkDurations, f.checkNames, f.checkAnswer, f.checkBody} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f Fault) checkNumbers() error {
	switch {
	case f.Count < 0:
		return fmt.Errorf("count %d is negative", f.Count)
	case f.Skip < 0:
		return fmt.Errorf("skip %d is negative", f.Skip)
	case f.Concurrent < 0:
		return fmt.Errorf("concurrent %d is negative", f.Concurrent)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d is not an HTTP status from 200 to 599", f.Status)
	case !(f.Probability >= 0 && f.Probability <= 1): // so that NaN fails
		return fmt.Errorf("probability %v is not from 0 to 1", f.Probability)
	}
	return nil
}

func (f Fault) checkDurations() error {
	for _, d := range f.durations(&faultJSON{}) {
		if *d.value < 0 {
			return fmt.Errorf("%s %s is negative", d.name, *d.value)
		}
	}
	return nil
}

func (f Fault) checkNames() error {
	switch {
	case !slices.Contains([]Drop{DropNever, DropBeforeCommit, DropAfterCommit, DropMidBody}, f.Drop):
		return fmt.Errorf("drop %q is none of %q, %q and %q", f.Drop, DropBeforeCommit, DropAfterCommit, DropMidBody)
	case !slices.Contains([]Manner{MannerClose, MannerReset, MannerHang}, f.Manner):
		return fmt.Errorf("manner %q is neither %q nor %q", f.Manner, MannerReset, MannerHang)
	case f.Manner != MannerClose && f.Drop == DropNever:
		return fmt.Errorf("manner %q needs a drop", f.Manner)
	}
	if _, known := errorSpecs[errorCode(f.Code)]; f.Code != "" && !known {
		return fmt.Errorf("code %q is not an error that A&AI has here", f.Code)
	}
	return nil
}

func (f Fault) checkAnswer() error {
	dropped := f.Drop == DropBeforeCommit || f.Drop == DropAfterCommit
	switch {
	case f.Status != 0 && dropped:
		return fmt.Errorf("status %d and drop %q exclude each other", f.Status, f.Drop)
	case f.Code != "" && (f.Status != 0 || dropped):
		return fmt.Errorf("code %q excludes status and drop", f.Code)
	case (f.Location != "") != (f.Status/100 == 3):
		return fmt.Errorf("location %q and status %d do not go together: a status from 300 to 399 and a location need each other", f.Location, f.Status)
	}
	return nil
}

func (f Fault) checkBody() error {
	cuts := 0
	for _, cut := range []bool{f.Empty, f.Truncate, f.WrongLength, f.Drop != DropNever} {
		if cut {
			cuts++
		}
	}
	if cuts > 1 {
		return fmt.Errorf("at most one of empty (%t), truncate (%t), wrong-length (%t) and drop (%q) can be had", f.Empty, f.Truncate, f.WrongLength, f.Drop)
	}
	return nil
}
