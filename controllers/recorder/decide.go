package recorder

import (
	"time"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// takeoverAfter is how long another writer has to save a change of a bundle before the place is taken over.
	// EMCO's rsync takes milliseconds while it works.
	takeoverAfter = 5 * time.Minute
	// absentRetry is when a place is looked for again that is not in etcd. EMCO creates places before bundles; a watch for
	// others would deliver everything that is written into contexts.
	absentRetry = 10 * time.Minute
)

// state is the state of a place.
type state string

// The states of places.
const (
	// stateSaved means that what is saved is the bundle as it was seen last.
	stateSaved state = "saved"
	// statePending means that it is not yet.
	statePending state = "pending"
	// stateYielded means that another writer saves the bundle.
	stateYielded state = "yielded"
	// stateAbsent means that the place is not in etcd.
	stateAbsent state = "absent"
	// stateNone is the state of a place without a bundle.
	stateNone state = ""
)

// step is what to do about a place.
type step int

// The steps.
const (
	stay step = iota
	save
	remove
)

// coWriter records the writes of another writer who saves a bundle. Etcd does not say who that is.
type coWriter struct {
	// revision is that of etcd at its last write, and version that of the bundle when the write was found.
	revision int64
	version  string
	// changed is when a version was found that it has not saved; zero when there is none.
	changed time.Time
}

// situation is all that matters for a place.
type situation struct {
	// bundle is the place's; nil when there is none, or that is not known.
	bundle *fleet.Bundle
	// others is how many more bundles have the label of the place.
	others int
	// known is true for a cluster of this hub, and complete when a bundle that is saved and not seen does not exist.
	known, complete bool
	// stored is what is in etcd, and hub the identity of this hub there.
	stored   appcontext.StoredBundle
	hub      string
	coWriter coWriter
	now      time.Time
	// readyKeys is true when EMCO's keys of readiness are kept too.
	readyKeys bool
}

// decision is what comes of a situation.
type decision struct {
	step step
	// state is the state of the place once the step is done.
	state state
	// again is when to look again if nothing changes; zero means never.
	again    time.Duration
	coWriter coWriter
}

// decide returns what to do about a place.
func decide(s situation) decision {
	switch {
	case s.bundle != nil:
		return decideOn(s.bundle, s)
	case s.stored.Saved != nil && s.gone():
		return decision{step: remove}
	}
	return decision{}
}

// decideOn returns what to do about a place that has a bundle.
func decideOn(b *fleet.Bundle, s situation) decision {
	stored := s.stored
	switch {
	case b.Lost && stored.Ours():
		return decision{state: stateSaved}
	case b.Lost:
		return decision{state: statePending}
	case !stored.Exists && stored.Saved != nil:
		return decision{step: remove, state: stateAbsent, again: absentRetry}
	case !stored.Exists:
		return decision{state: stateAbsent, again: absentRetry}
	case stored.Revision > 0 && !stored.Ours(): // Another program has written it.
		return yield(s)
	case stored.Ours() && stored.Saved.UID == string(b.UID) && stored.Saved.ResourceVersion == b.ResourceVersion && stored.Saved.Hub == s.hub && (stored.Saved.Ready != nil) == s.readyKeys:
		return decision{state: stateSaved}
	}
	return decision{step: save, state: stateSaved}
}

// gone reports whether a bundle that is not found does not exist. What another hub has saved of a cluster that this one does not know stays.
func (s situation) gone() bool { return s.complete && (s.known || s.stored.Saved.Hub == s.hub) }

// yield leaves a place to another writer as long as that writer saves the changes of the bundle. rsync writes whenever the
// bundle changes; what it saved before it was restarted or lost its watch, it never writes again.
func yield(s situation) decision {
	r := s.coWriter
	if r.revision != s.stored.Revision {
		r = coWriter{revision: s.stored.Revision, version: s.bundle.ResourceVersion}
	}
	if r.changed.IsZero() && r.version != s.bundle.ResourceVersion {
		r.changed = s.now
	}
	if r.changed.IsZero() {
		return decision{state: stateYielded, coWriter: r}
	}
	if wait := r.changed.Add(takeoverAfter).Sub(s.now); wait > 0 {
		return decision{state: stateYielded, again: wait, coWriter: r}
	}
	return decision{step: save, state: stateSaved}
}
