package recorder

import (
	"time"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// silence is how long somebody else has for saving a change of a bundle before nobody is taken to do so any more.
	// EMCO's rsync takes milliseconds while it works.
	silence = 5 * time.Minute
	// absentRetry is when a place is looked for again that is not in etcd. EMCO makes places before bundles; to be
	// told of others would mean to be sent everything that anybody writes into contexts.
	absentRetry = 10 * time.Minute
)

// state says in a word how it stands with a place.
type state string

// The states of places.
const (
	// stateSaved means that what is saved is the bundle as it was seen last.
	stateSaved state = "saved"
	// statePending means that it is not yet.
	statePending state = "pending"
	// stateYielded means that somebody else saves the bundle.
	stateYielded state = "yielded"
	// stateAbsent means that the place is not in etcd.
	stateAbsent state = "absent"
	// stateNone means that there is nothing to say.
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

// rival is what is remembered of somebody else who saves a bundle. It knows no more than that: etcd does not say who writes.
type rival struct {
	// revision is that of etcd at which they have written last, and version that of the bundle when this was noticed.
	revision int64
	version  string
	// changed is when a version was noticed that they have not saved; zero when there is none.
	changed time.Time
}

// situation is all that matters for a place.
type situation struct {
	// bundle is the place's; nil when there is none, or nobody can see whether there is.
	bundle *fleet.Bundle
	// others is how many more bundles say that the place is theirs.
	others int
	// known is true for a cluster of this hub, and complete when a bundle that is saved and not seen does not exist.
	known, complete bool
	// stored is what is in etcd, and hub who we are there.
	stored appcontext.StoredBundle
	hub    string
	rival  rival
	now    time.Time
}

// decision is what comes of a situation.
type decision struct {
	step step
	// state is how it stands with the place once the step is done.
	state state
	// again is when to look again if nothing changes; zero means never.
	again time.Duration
	rival rival
}

// decide says what to do about a place.
func decide(s situation) decision {
	switch {
	case s.bundle != nil:
		return decideOn(s.bundle, s)
	case s.stored.Saved != nil && s.gone():
		return decision{step: remove}
	}
	return decision{}
}

// decideOn says what to do about a place that has a bundle.
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
	case stored.Foreign():
		return yield(s)
	case stored.Ours() && stored.Saved.UID == string(b.UID) && stored.Saved.ResourceVersion == b.ResourceVersion && stored.Saved.Hub == s.hub:
		return decision{state: stateSaved}
	}
	return decision{step: save, state: stateSaved}
}

// gone says whether a bundle that is not seen does not exist. What another hub has saved of a cluster that this one does not know is none of its business.
func (s situation) gone() bool { return s.complete && (s.known || s.stored.Saved.Hub == s.hub) }

// yield leaves a place to somebody else as long as they follow the bundle. rsync writes whenever the bundle changes,
// whatever has changed; what it saved in an earlier life, or before it lost its watch, it never touches again.
func yield(s situation) decision {
	r := s.rival
	if r.revision != s.stored.Revision {
		r = rival{revision: s.stored.Revision, version: s.bundle.ResourceVersion}
	}
	if r.changed.IsZero() && r.version != s.bundle.ResourceVersion {
		r.changed = s.now
	}
	if r.changed.IsZero() {
		return decision{state: stateYielded, rival: r}
	}
	if wait := r.changed.Add(silence).Sub(s.now); wait > 0 {
		return decision{state: stateYielded, again: wait, rival: r}
	}
	return decision{step: save, state: stateSaved}
}
