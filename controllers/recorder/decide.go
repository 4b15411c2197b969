package recorder

import (
	"time"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// takeoverAfter is how long a change of a bundle may stay unsaved by another writer before the place is taken over.
	// A working EMCO rsync saves it within milliseconds.
	takeoverAfter = 5 * time.Minute
	// absentRetry is how long to wait before looking again for a place that is not in etcd. EMCO creates places before bundles; a watch
	// for late places would deliver everything that is written into contexts.
	absentRetry = 10 * time.Minute
)

// state is the state of a place.
type state string

// The states of places.
const (
	// stateSaved means that the last seen version of the bundle is saved.
	stateSaved state = "saved"
	// statePending means that it is not saved yet.
	statePending state = "pending"
	// stateYielded means that another writer saves the bundle.
	stateYielded state = "yielded"
	// stateAbsent means that the place is not in etcd.
	stateAbsent state = "absent"
	// stateNone is the state of a place without a bundle.
	stateNone state = ""
)

// action is what to do about a place.
type action int

// The actions.
const (
	actionNone action = iota
	actionSave
	actionRemove
)

// coWriter records the writes of another writer of a place. Etcd does not identify the writer.
type coWriter struct {
	// revision is the revision of etcd at its last write, and version is the version of the bundle when that write was found.
	revision int64
	version  string
	// unsavedSince is when a version was found that it has not saved; zero if there is none.
	unsavedSince time.Time
}

// input is everything that decide considers about a place.
type input struct {
	// bundle is the bundle of the place; nil if there is none, or if that is not known.
	bundle *fleet.Bundle
	// duplicates is the number of further bundles with the label of the place.
	duplicates int
	// known is true if the cluster is one of this hub. complete is true if a saved bundle that is not seen does not exist.
	known, complete bool
	// stored is the bundle in etcd, and hub is the identity of this hub there.
	stored   appcontext.StoredBundle
	hub      string
	coWriter coWriter
	now      time.Time
	// readyKeys is true if the recorder also writes EMCO's readiness keys.
	readyKeys bool
}

// decision is the result of decide.
type decision struct {
	action action
	// state is the state of the place once the action is done.
	state state
	// requeueAfter is when to reconcile again if nothing changes; zero means never.
	requeueAfter time.Duration
	coWriter     coWriter
}

// decide returns what to do about a place.
func decide(s input) decision {
	switch {
	case s.bundle != nil:
		return decideOn(s.bundle, s)
	case s.stored.Saved != nil && s.isGone():
		return decision{action: actionRemove}
	}
	return decision{}
}

// decideOn returns what to do about a place that has a bundle.
func decideOn(b *fleet.Bundle, s input) decision {
	stored := s.stored
	switch {
	case b.Stale && stored.IsOurs():
		return decision{state: stateSaved}
	case b.Stale:
		return decision{state: statePending}
	case !stored.Exists && stored.Saved != nil:
		return decision{action: actionRemove, state: stateAbsent, requeueAfter: absentRetry}
	case !stored.Exists:
		return decision{state: stateAbsent, requeueAfter: absentRetry}
	case stored.Revision > 0 && !stored.IsOurs(): // Another program has written it.
		return yield(s)
	case stored.IsOurs() && stored.Saved.UID == string(b.UID) && stored.Saved.ResourceVersion == b.ResourceVersion && stored.Saved.Hub == s.hub && (stored.Saved.Ready != nil) == s.readyKeys:
		return decision{state: stateSaved}
	}
	return decision{action: actionSave, state: stateSaved}
}

// isGone reports whether a bundle that was not found does not exist. What another hub saved for a cluster unknown to this hub does not count
// as gone.
func (s input) isGone() bool { return s.complete && (s.known || s.stored.Saved.Hub == s.hub) }

// yield leaves a place to another writer as long as that writer saves the changes of the bundle. rsync writes each change of the
// bundle, but after a restart, or when its watch has ended, it no longer writes the bundles that it saved before.
func yield(s input) decision {
	r := s.coWriter
	if r.revision != s.stored.Revision {
		r = coWriter{revision: s.stored.Revision, version: s.bundle.ResourceVersion}
	}
	if r.unsavedSince.IsZero() && r.version != s.bundle.ResourceVersion {
		r.unsavedSince = s.now
	}
	if r.unsavedSince.IsZero() {
		return decision{state: stateYielded, coWriter: r}
	}
	if wait := r.unsavedSince.Add(takeoverAfter).Sub(s.now); wait > 0 {
		return decision{state: stateYielded, requeueAfter: wait, coWriter: r}
	}
	return decision{action: actionSave, state: stateSaved}
}
