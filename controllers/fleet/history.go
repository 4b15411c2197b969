package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// History remembers since when objects have been in their state, for those whose time is
// not reported elsewhere: the resources of other monitors' bundles, objects that
// scopes refer to directly, and missing objects. It is not safe for concurrent use.
type History struct {
	known map[healthscope.Key]Observation
}

// Observation is what is remembered of an object.
type Observation struct {
	// UID is the object's uid; empty when unknown.
	UID string
	// State and Reason are its last state and reason.
	State  healthscope.State
	Reason healthscope.Reason
	// Since is when it entered the state; zero when unknown.
	Since time.Time
}

// Member returns what is remembered of an object in the form that healthscope.Policy.WithHistory needs.
func (s Observation) Member(key healthscope.Key) healthscope.Member {
	return healthscope.Member{Result: healthscope.Result{Key: key, UID: s.UID, State: s.State, Reason: s.Reason, Since: s.Since}}
}

// NewMemory returns a memory that begins with the judged states from before a restart, which a status has recorded.
func NewMemory(past map[healthscope.Key]Observation) *History { return &History{known: past} }

// Resume returns the results, each object once, and sets the time since when an object
// has been in its state where the result does not have it. It remembers these objects
// and no others. Of several results for an object it returns the worst of those that
// could read it; otherwise the object's state would change all the time. It reuses the memory of results.
func (m *History) Resume(results []healthscope.Result, policy healthscope.Policy, now time.Time) []healthscope.Result {
	slices.SortFunc(results, compareResults)
	results = slices.CompactFunc(results, func(a, b healthscope.Result) bool { return a.Key == b.Key })
	known := make(map[healthscope.Key]Observation, len(results))
	for i := range results {
		r := &results[i]
		if r.Since.IsZero() {
			r.Since = m.since(*r, policy, now.Truncate(time.Second))
		}
		known[r.Key] = Observation{UID: r.UID, State: r.State, Reason: r.Reason, Since: r.Since}
	}
	m.known = known
	return results
}

// unreadableReasons are the reasons of results that say nothing about the object itself, because it could not be read.
var unreadableReasons = []healthscope.Reason{
	healthscope.ReasonForbidden, healthscope.ReasonKindNotFound, healthscope.ReasonNotSynced,
	healthscope.ReasonUnknownCluster, healthscope.ReasonCrossNamespace, healthscope.ReasonInvalidReference, healthscope.ReasonTooManyKinds,
}

// CompareReadable sorts a result of an object that could be read before one of an object that could not, for example
// because a right is missing; it returns 0 when both could, or neither.
func CompareReadable(a, b healthscope.Result) int {
	switch x, y := isUnreadable(a), isUnreadable(b); {
	case x == y:
		return 0
	case x:
		return 1
	default:
		return -1
	}
}

func isUnreadable(r healthscope.Result) bool {
	return r.State == healthscope.Unknown && slices.Contains(unreadableReasons, r.Reason)
}

// compareResults sorts results by object, and those of one object by whether they could read it, then
// by state, the worst first. The other fields make the order complete.
func compareResults(a, b healthscope.Result) int {
	if c := a.Compare(b.Key); c != 0 {
		return c
	}
	return cmp.Or(CompareReadable(a, b), healthscope.CompareStates(a.State, b.State), strings.Compare(string(a.Reason), string(b.Reason)),
		strings.Compare(a.Message, b.Message), strings.Compare(a.UID, b.UID), strings.Compare(a.Version, b.Version))
}

// since returns since when an object has been in the state of a result. It treats a time in
// the future, which a wrong clock caused, as now.
func (m *History) since(r healthscope.Result, policy healthscope.Policy, now time.Time) time.Time {
	was, ok := m.known[r.Key]
	if was.Since.After(now) {
		was.Since = now
	}
	switch {
	case !ok && r.State == healthscope.Ready:
		// It may have been ready for long: the status does not record healthy objects. No time is better than a wrong one.
		return time.Time{}
	case !ok, was.UID != "" && r.UID != "" && was.UID != r.UID:
		return now
	case was.State == r.State:
		return was.Since
	case was.Reason == healthscope.ReasonPendingTimeout && r.State == healthscope.Pending:
		// The status records when the timeout expired; the state began that much earlier.
		return was.Since.Add(-cmp.Or(r.ProgressDeadline, policy.PendingTimeout))
	case policy.FailureGrace > 0 && was.State == healthscope.Pending && r.State == healthscope.Failed && was.Reason == r.Reason:
		// The status shows a recent failure as Pending.
		return was.Since
	default:
		return now
	}
}

// carryOver converts the judged states from before a restart to those of the raw results of a
// bundle: the raw result of a workload that was Failed because of its pods is Pending, and its pods have failed for as long.
func carryOver(past map[healthscope.Key]Observation, results []healthscope.Result) map[healthscope.Key]Observation {
	known := map[healthscope.Key]Observation{}
	for _, r := range results {
		if was, ok := past[r.Key]; ok {
			if r.State == healthscope.Pending && was.State == healthscope.Failed && was.Reason != healthscope.ReasonPendingTimeout {
				was.State = healthscope.Pending
			}
			known[r.Key] = was
			continue
		}
		if r.Owner == nil {
			continue
		}
		owner := healthscope.Key{Cluster: r.Cluster, Group: r.Owner.Group, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}
		if was, ok := past[owner]; ok && was.State == healthscope.Failed && r.State == healthscope.Failed && was.Reason == r.Reason {
			known[r.Key] = Observation{State: was.State, Reason: was.Reason, Since: was.Since}
		}
	}
	return known
}
