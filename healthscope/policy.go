package healthscope

import (
	"sort"
	"time"
)

// Defaults of Policy.
const (
	// DefaultPendingTimeout is the default of Policy.PendingTimeout. It is the default of a Deployment's progressDeadlineSeconds.
	DefaultPendingTimeout = 600 * time.Second
	// DefaultNotPresentGrace is how long an expected object may be missing before that counts as Failed.
	DefaultNotPresentGrace = 60 * time.Second
	// DefaultNoStatusGrace is how long the controller of a custom resource may take to write its first status.
	DefaultNoStatusGrace = 60 * time.Second
)

// Policy holds the time limits and grace periods of the installation. The zero value has none of them; use DefaultPolicy.
type Policy struct {
	// PendingTimeout is how long an object may be Pending before it is Failed with the reason PendingTimeout, unless the workload has a progressDeadlineSeconds. Zero means indefinitely.
	PendingTimeout time.Duration
	// NotPresentGrace is how long an expected object that is missing counts as Pending before it counts as Failed.
	NotPresentGrace time.Duration
	// NoStatusGrace is how long an object without a status is Pending with the reason NotObserved, before the result of its rule counts: NoStatus.
	NoStatusGrace time.Duration
	// FailureGrace delays Failed: an object that fails keeps its previous state for this time, Ready with a warning or Pending. Without a history (WithHistory) it is Pending.
	FailureGrace time.Duration
	// RecoveryHold delays recovery: an object that was Failed stays Failed until it has been in one better state for this time. It needs a history (WithHistory).
	RecoveryHold time.Duration
}

// DefaultPolicy returns the policy of an installation that does not configure one.
func DefaultPolicy() Policy {
	return Policy{PendingTimeout: DefaultPendingTimeout, NotPresentGrace: DefaultNotPresentGrace, NoStatusGrace: DefaultNoStatusGrace}
}

// hasHysteresis reports whether the policy depends on the previous state of an object.
func (p Policy) hasHysteresis() bool { return p.FailureGrace > 0 || p.RecoveryHold > 0 }

// WithHistory sets the History of results from the members of a previous judgement of
// the same objects. before is sorted by key, as in a Judgement, and must not be changed
// until the results are judged. A result whose object is not in before, or has another
// uid there, is left unchanged: that object is new.
//
// FailureGrace and RecoveryHold need the history, because a raw result holds the time
// since which an object is in its state, and not the state before. PendingTimeout needs
// it for an object that is Pending and does not serve, because it may have served until
// now. Without FailureGrace and RecoveryHold, only results of such objects get a History.
//
// After a restart, a caller can restore before from its status: members with key,
// state, reason and since are sufficient. Whether they served is not known then, and
// PendingTimeout counts from since.
func (p Policy) WithHistory(results []Result, before []Member) {
	for i := range results {
		r := &results[i]
		if !p.hasHysteresis() && (r.State != Pending || r.Serving) {
			continue
		}
		at, ok := find(before, &r.Key)
		if ok && (r.UID == before[at].UID || r.UID == "" || before[at].UID == "") {
			r.History = &before[at]
		}
	}
}

// find returns the index of an object in members, which are sorted by key, and whether it is there.
func find(members []Member, key *Key) (int, bool) {
	return sort.Find(len(members), func(i int) int { return compareKeys(key, &members[i].Key) })
}
