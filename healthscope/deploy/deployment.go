package deploy

import (
	"cmp"
	"slices"
)

// Deployment are the contexts that keep the states of resources in one place, as far as something is to be done with them. They
// have resources in common, so that one event at a time is handled.
type Deployment []Member

// Member is a context of a deployment.
type Member struct {
	ID string
	Lifecycle
	// Revision is etcd's when the queue was last written.
	Revision int64
}

// Next returns the id of the context whose next event is to be handled; empty when there is none. An event that was begun comes
// first, so that at most one is. Then come terminations, which interrupt what is begun, and then what an update has left to
// delete: it is a part of that update, and comes before the next one. Others come in the order in which they were added.
func (d Deployment) Next() string {
	rank := func(m Member) int {
		switch {
		case m.begun():
			return 0
		case m.waits(EventTerminate):
			return 1
		case m.waits(EventUpdateDelete):
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

// Interrupted reports whether the event that is being handled of a context is to end before its work is done: the context says so, is
// gone, or another one of the deployment is to be terminated.
func (d Deployment) Interrupted(id string) bool {
	i := slices.IndexFunc(d, func(m Member) bool { return m.ID == id })
	if i < 0 || d[i].Interrupted() {
		return true
	}
	first := d[i].pending()
	return first >= 0 && d[i].Queue[first].Event != EventTerminate &&
		slices.ContainsFunc(d, func(m Member) bool { return m.waits(EventTerminate) })
}
