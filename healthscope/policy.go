package healthscope

import "time"

// Defaults of Policy.
const (
	// DefaultPendingTimeout is how long an object may be Pending when neither it nor the policy says otherwise. It is the default of a Deployment's progressDeadlineSeconds.
	DefaultPendingTimeout = 600 * time.Second
	// DefaultNotPresentGrace is how long an expected object may be missing before that counts as Failed.
	DefaultNotPresentGrace = 60 * time.Second
	// DefaultNoStatusGrace is how long the controller of a custom resource has to write its first status.
	DefaultNoStatusGrace = 60 * time.Second
)

// Policy is the installation's policy in matters of time. The zero value judges without mercy; use DefaultPolicy.
type Policy struct {
	// PendingTimeout turns Pending into Failed, PendingTimeout, unless the workload says progressDeadlineSeconds itself. Zero means never.
	PendingTimeout time.Duration
	// NotPresentGrace is how long an expected object that is missing counts as Pending before it counts as Failed.
	NotPresentGrace time.Duration
	// NoStatusGrace is how long an object without a status is Pending, NotObserved, before it is what its rule says: NoStatus.
	NoStatusGrace time.Duration
	// FailureGrace delays Failed: for so long an object that fails keeps the state it had, Ready with a warning or Pending. Without a memory (WithHistory) it is Pending.
	FailureGrace time.Duration
	// RecoveryHold delays the way back: an object that was Failed stays so until it has been in one better state for so long. It needs a memory (WithHistory).
	RecoveryHold time.Duration
}

// DefaultPolicy returns the policy of an installation that says nothing.
func DefaultPolicy() Policy {
	return Policy{PendingTimeout: DefaultPendingTimeout, NotPresentGrace: DefaultNotPresentGrace, NoStatusGrace: DefaultNoStatusGrace}
}

// hasHysteresis reports whether the policy looks at what was said of an object before.
func (p Policy) hasHysteresis() bool { return p.FailureGrace > 0 || p.RecoveryHold > 0 }

// History is what was last said of an object.
type History struct {
	// State, Reason, Message and Since are those of the last Member.
	State   State
	Reason  Reason
	Message string
	Since   time.Time
	// Serving and StoppedServing are, too.
	Serving        bool
	StoppedServing time.Time
	// Progress is, too.
	Progress *Progress
}

// WithHistory gives results what a judgement before, on the same objects, said of
// them. before is sorted by key, as in a Judgement. A result whose object it does not
// name, or whose uid is another one, is left as it is: that object is new.
//
// FailureGrace and RecoveryHold need this memory, because a raw result says
// since when an object is in its state, and not what became of the state before.
// So does PendingTimeout, for what is Pending and does not serve: it may have served
// until now. For a policy without the former, only such results are given anything.
//
// The memory is only as good as the caller's. After a restart a caller has what
// its status says: such members, with key, state, reason and since, do; that they served is not
// known then, and PendingTimeout counts from since.
func (p Policy) WithHistory(results []Result, before []Member) {
	if len(before) == 0 {
		return
	}
	n := 0
	for i := range results {
		if p.needsHistory(&results[i]) {
			n++
		}
	}
	histories := make([]History, 0, n) // Never grows: results point into it.
	for i := range results {
		r := &results[i]
		if !p.needsHistory(r) {
			continue
		}
		at, ok := find(before, &r.Key)
		if !ok || r.UID != before[at].UID && r.UID != "" && before[at].UID != "" {
			continue
		}
		was := &before[at]
		histories = append(histories, History{
			State: was.State, Reason: was.Reason, Message: was.Message, Since: was.Since, Serving: was.Serving, StoppedServing: was.StoppedServing,
			Progress: was.Progress,
		})
		r.History = &histories[len(histories)-1]
	}
}

// needsHistory reports whether what was said of a result's object before can make a difference.
func (p Policy) needsHistory(r *Result) bool {
	return p.hasHysteresis() || r.State == Pending && !r.Serving
}

// find returns where among members, which are sorted by key, an object is.
func find(members []Member, key *Key) (int, bool) {
	low, high := 0, len(members)
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch c := compareKeys(&members[middle].Key, key); {
		case c == 0:
			return middle, true
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}
