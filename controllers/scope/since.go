package scope

import (
	"cmp"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// sinceMemory remembers since when the objects that a scope refers to directly,
// and the ones that are missing, are in their state. Resources of bundles need
// no memory: their monitor has one.
type sinceMemory struct {
	known map[healthscope.Key]seen
}

type seen struct {
	state  healthscope.State
	reason healthscope.Reason
	since  time.Time
}

// newSinceMemory begins with what the scope's status remembers from before a restart.
func newSinceMemory(status *corev1alpha2.HealthScopeStatus) *sinceMemory {
	m := &sinceMemory{known: map[healthscope.Key]seen{}}
	for _, c := range status.Culprits {
		if c.Since == nil {
			continue
		}
		key := healthscope.Key{Cluster: c.Cluster, Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
		m.known[key] = seen{state: healthscope.State(c.State), reason: healthscope.Reason(c.Reason), since: c.Since.Time}
	}
	return m
}

// resume returns the results of findings, each object once, with the time since
// when it is in its state, and remembers these and no others. Of several results
// for an object the worst counts: with each of them in turn it would change its state all the time.
func (m *sinceMemory) resume(findings []finding, policy healthscope.Policy, now time.Time) map[healthscope.Key]healthscope.Result {
	results := map[healthscope.Key]healthscope.Result{}
	for _, f := range findings {
		for _, r := range f.results {
			if other, ok := results[r.Key]; !ok || compareResults(r, other) < 0 {
				results[r.Key] = r
			}
		}
	}
	known := make(map[healthscope.Key]seen, len(results))
	for key, r := range results {
		r.Since = m.since(r, policy, now)
		results[key] = r
		known[key] = seen{state: r.State, reason: r.Reason, since: r.Since}
	}
	m.known = known
	return results
}

// compareResults sorts the results for one object, the worse state first. The rest makes the order complete.
func compareResults(a, b healthscope.Result) int {
	return cmp.Or(healthscope.CompareStates(a.State, b.State), strings.Compare(string(a.Reason), string(b.Reason)),
		strings.Compare(a.Message, b.Message), strings.Compare(a.UID, b.UID), strings.Compare(a.Version, b.Version))
}

// since returns since when an object is in the state of a result.
func (m *sinceMemory) since(r healthscope.Result, policy healthscope.Policy, now time.Time) time.Time {
	was, ok := m.known[r.Key]
	switch {
	case ok && was.state == r.State:
		return was.since
	case !ok && r.State == healthscope.Ready:
		// It may have been ready for long: status does not remember healthy objects over a restart. No time is better than a wrong one.
		return time.Time{}
	case ok && was.reason == healthscope.ReasonPendingTimeout && r.State == healthscope.Pending:
		// The status says since when the time was over; it began that much earlier.
		return was.since.Add(-cmp.Or(r.ProgressDeadline, policy.PendingTimeout))
	case ok && policy.FailureGrace > 0 && was.state == healthscope.Pending && r.State == healthscope.Failed && was.reason == r.Reason:
		// The status says Pending of a failure that is young.
		return was.since
	default:
		return now.Truncate(time.Second)
	}
}
