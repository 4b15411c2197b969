package deploy

import (
	"cmp"
	"slices"
)

// Deployment holds the contexts with pending work that keep the states of their resources in the same status context. They
// share resources, so one event at a time is handled.
type Deployment []Member

// Member is a context of a deployment.
type Member struct {
	ID string
	Lifecycle
	// Revision is the revision of etcd at which the queue was last written.
	Revision int64
}

// Next returns the id of the context whose next event is to be handled; empty when there is none. An event that was begun comes
// first, so that at most one is in progress. Then come terminations, which interrupt other events, and then deletions that are
// left of an update: they are a part of it, and come before the next one. Others come in the order in which they were added.
func (d Deployment) Next() string {
	rank := func(m Member) int {
		switch {
		case m.begun():
			return 0
		case m.hasPending(EventTerminate):
			return 1
		case m.hasPending(EventUpdateDelete):
			return 2
		default:
			return 3
		}
	}
	if len(d) == 0 {
		return ""
	}
	return slices.MinFunc(d, func(a, b Member) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.ID, b.ID))
	}).ID
}

// Interrupted reports whether the current event of a context must end before its work is done: its lifecycle says so, the
// context is gone, or another context of the deployment has a pending termination.
func (d Deployment) Interrupted(id string) bool {
	i := slices.IndexFunc(d, func(m Member) bool { return m.ID == id })
	if i < 0 || d[i].Interrupted() {
		return true
	}
	first := d[i].PendingIndex()
	return first >= 0 && d[i].Queue[first].Event != EventTerminate &&
		slices.ContainsFunc(d, func(m Member) bool { return m.hasPending(EventTerminate) })
}

// Superseded reports whether the retry of a context's event must end because another event of the deployment is pending.
func (d Deployment) Superseded(id string) bool {
	return slices.ContainsFunc(d, func(m Member) bool {
		last := len(m.Queue) - 1
		return m.Active() && (m.ID != id || m.PendingIndex() != last)
	})
}
