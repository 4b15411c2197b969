package sync

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// State says how far an object in A&AI is from what is desired.
type State string

// The states.
const (
	// Synced means that A&AI holds what is desired.
	Synced State = "Synced"
	// Pending means that it does not yet; it will be tried again.
	Pending State = "Pending"
	// Failed means that it does not, and that nothing is tried until the desired document changes or the next resync.
	Failed State = "Failed"
)

// Reason says why an object is not synced.
type Reason string

// The reasons.
const (
	// ReasonNotTried means that the pass ended before the object had its turn.
	ReasonNotTried Reason = "NotTried"
	// ReasonUnavailable means that A&AI could not do it for now.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonMissingDependency means that the tenant, or the target of a relationship, does not exist in A&AI.
	ReasonMissingDependency Reason = "MissingDependency"
	// ReasonRejected means that A&AI will not take the object as it is.
	ReasonRejected Reason = "Rejected"
	// ReasonConflict means that a document of somebody else has the object's place.
	ReasonConflict Reason = "Conflict"
)

// Object is the standing of one object.
type Object struct {
	// State says how far it is.
	State State
	// Reason says why it is not synced; empty when it is.
	Reason Reason
	// Message says the same for people.
	Message string
}

// Report is the outcome of a pass.
type Report struct {
	// Objects has an entry for each desired document that is not held, and for each one that is yet to be deleted.
	Objects map[aai.Key]Object
	// Synced, Pending and Failed count Objects by state.
	Synced, Pending, Failed int
	// Acknowledged holds the objects that this pass wrote, with the time of A&AI's last acknowledgement.
	Acknowledged map[aai.Key]time.Time
	// NextPass is when there will be something to do even if nothing changes: the next resync, or the next try of an object that waits.
	NextPass time.Time
}

// report tells the outcome of the pass, and forgets what is of no more use.
func (p *pass) report() Report {
	final := plan.Diff(p.desired, p.known, p.holds, p.options.Plan)
	remaining := map[aai.Key]bool{}
	for _, op := range final.Operations {
		remaining[op.Key] = true
	}
	for key := range p.uncertain {
		if !p.holds.Keys[key] {
			remaining[key] = true
		}
	}
	p.prune(remaining)
	r := Report{Objects: make(map[aai.Key]Object, len(p.desired)), Acknowledged: p.acked, NextPass: p.nextPass()}
	for key := range p.desired {
		if !p.holds.Keys[key] {
			r.Objects[key] = Object{State: Synced}
		}
	}
	for key := range remaining {
		r.Objects[key] = p.trouble(key)
	}
	for _, c := range final.Conflicts {
		r.Objects[c.Key] = Object{State: Failed, Reason: ReasonConflict, Message: fmt.Sprintf("%q belongs to data-owner %q", c.Key.Path(), c.Owner)}
	}
	for _, o := range r.Objects {
		switch o.State {
		case Synced:
			r.Synced++
		case Pending:
			r.Pending++
		case Failed:
			r.Failed++
		}
	}
	return r
}

// trouble says why an object is not synced.
func (p *pass) trouble(key aai.Key) Object {
	if p.given(key, p.want(key)) {
		return Object{State: Failed, Reason: ReasonRejected, Message: p.dead[key].err.Error()}
	}
	if err := p.failing[key]; err != nil {
		return Object{State: Pending, Reason: ReasonUnavailable, Message: err.Error()}
	}
	if parked, ok := p.parked[key]; ok {
		return Object{State: Pending, Reason: ReasonMissingDependency, Message: parked.err.Error()}
	}
	o := Object{State: Pending, Reason: ReasonNotTried}
	if p.halt != nil {
		o.Message = p.halt.Error()
	}
	return o
}

// nextPass returns when there will be something to do even if nothing changes.
func (p *pass) nextPass() time.Time {
	next := p.options.Clock()
	if !p.resynced.IsZero() {
		next = p.resynced.Add(p.options.Resync)
	}
	for _, parked := range p.parked {
		if parked.until.Before(next) {
			next = parked.until
		}
	}
	return next
}

// err returns the error of the pass: what halted it, or else what failed for want of A&AI.
func (p *pass) err() error {
	if p.halt != nil {
		return fmt.Errorf("cannot synchronise tenant %q: %w", p.tenant, p.halt)
	}
	keys := slices.SortedFunc(maps.Keys(p.failing), aai.Key.Compare)
	if len(keys) == 0 {
		return nil
	}
	first := p.failing[keys[0]]
	return fmt.Errorf("cannot synchronise tenant %q: %d objects failed, the first: %w", p.tenant, len(keys), first)
}
