package status

import (
	"cmp"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// rollup is the combined state of resources. The zero value is the rollup of no resources.
type rollup struct {
	summary healthscope.Summary
	// rows is the number of all resources, also of those that do not count in summary. remaining is the number of resources that are being
	// deleted and are not known to be gone. undeletable and unknown are the numbers of resources that do not count and are Failed or Unknown.
	rows, remaining, undeletable, unknown int
	// unknownReason is the first reason among the unknown resources.
	unknownReason healthscope.Reason
	// worst is the resource that determines the combined state: of the resources in the worst state, the one that has been in it longest.
	worst worstResource
	// since is the start of the combined state: for Ready the latest Since of the resources, for others the earliest known.
	since time.Time
	// sinceUnknown is true when the Since of a Ready resource is not known. It is used only while the combined state is Ready.
	sinceUnknown bool
}

// worstResource is a resource and its app and cluster. member is nil if there is no resource.
type worstResource struct {
	AppInCluster

	member *healthscope.Member
}

// add adds a resource.
func (u *rollup) add(at AppInCluster, r *row) {
	u.rows++
	if r.remains {
		u.remaining++
	}
	if r.counts {
		u.summary.Add(*r.judged)
		u.updateWorst(worstResource{at, r.judged}, r.judged.Since, r.judged.Since.IsZero())
		return
	}
	switch r.judged.State {
	case healthscope.Unknown:
		u.unknown++
		u.unknownReason = cmp.Or(u.unknownReason, r.judged.Reason)
	case healthscope.Failed:
		u.undeletable++
	case healthscope.Ready, healthscope.Pending, healthscope.Terminating, healthscope.NotPresent:
	}
}

// updateWorst updates worst and since with a resource, or with the worst resource of another rollup. partial means that not every Since is known.
func (u *rollup) updateWorst(c worstResource, since time.Time, partial bool) {
	rank, now := rankOf(c.member), rankOf(u.worst.member)
	switch {
	case rank < now:
	case rank > now:
		u.worst, u.since, u.sinceUnknown = c, since, partial
	case rank == 1:
		u.sinceUnknown = u.sinceUnknown || partial
		if since.After(u.since) {
			u.since = since
		}
	case !since.IsZero() && (u.since.IsZero() || since.Before(u.since)):
		u.worst, u.since = c, since
	}
}

// rankOf returns the rank of the state that a member counts as, in the order in which healthscope.Summary rolls states up. A worse state
// has a higher rank. The rank of nil is 0.
func rankOf(m *healthscope.Member) int {
	if m == nil {
		return 0
	}
	switch m.Counts {
	case healthscope.Ready:
		return 1
	case healthscope.Pending:
		return 2
	case healthscope.Failed:
		return 4
	case healthscope.Unknown, healthscope.Terminating, healthscope.NotPresent:
	}
	return 3
}

// merge adds the resources of another rollup.
func (u *rollup) merge(o rollup) {
	u.rows, u.remaining, u.undeletable, u.unknown = u.rows+o.rows, u.remaining+o.remaining, u.undeletable+o.undeletable, u.unknown+o.unknown
	u.unknownReason = cmp.Or(u.unknownReason, o.unknownReason)
	u.addSummary(o.summary)
	if o.worst.member != nil {
		u.updateWorst(o.worst, o.since, o.sinceUnknown)
	}
}

// addSummary adds counts of resources without their names.
func (u *rollup) addSummary(s healthscope.Summary) {
	u.summary.Total += s.Total
	u.summary.Ready += s.Ready
	u.summary.Pending += s.Pending
	u.summary.Failed += s.Failed
	u.summary.Unknown += s.Unknown
	u.summary.Healthy += s.Healthy
}

// health returns the health of a rollup.
func (b *builder) health(u rollup) *Health {
	counts := &Counts{Total: u.summary.Total, Ready: u.summary.Ready, Pending: u.summary.Pending, Failed: u.summary.Failed, Unknown: u.summary.Unknown}
	h := &Health{Resources: counts}
	switch {
	case u.rows == 0 && b.query.filtered():
		h.set(healthscope.Unknown, ReasonNoMatch, "no resource matches the filters")
	case b.lifecycle.deleting:
		b.setDeletingHealth(h, u)
	case u.summary.Total == 0:
		h.set(healthscope.Unknown, cmp.Or(u.unknownReason, healthscope.ReasonNoResources), "there is no resource whose health is known")
	default:
		b.setPresentHealth(h, u)
	}
	return h
}

func (h *Health) set(state healthscope.State, reason healthscope.Reason, message string) {
	h.State, h.Reason, h.Message = string(state), string(reason), message
}

// setDeletingHealth sets the health of resources that are being deleted.
func (b *builder) setDeletingHealth(h *Health, u rollup) {
	switch {
	case u.undeletable > 0:
		h.set(healthscope.Failed, ReasonRsyncFailed, "rsync could not delete everything")
	case u.remaining > 0 && b.lifecycle.terminated:
		h.set(healthscope.Terminating, ReasonStillPresent, "rsync has deleted everything, and something is still there")
	case u.remaining > 0:
		h.set(healthscope.Terminating, healthscope.ReasonDeleting, "not everything has been deleted yet")
	case u.unknown > 0:
		h.set(healthscope.Unknown, u.unknownReason, "rsync has deleted everything, and it cannot be seen whether it has gone")
	default:
		h.set(healthscope.NotPresent, ReasonTerminated, "everything has been deleted")
	}
}

// setPresentHealth sets the health of resources that are not being deleted.
func (b *builder) setPresentHealth(h *Health, u rollup) {
	state := u.summary.State()
	h.State = string(state)
	if u.worst.member == nil || u.worst.member.Counts != state {
		return // Unlisted resources determine the state.
	}
	if !u.sinceUnknown || state != healthscope.Ready {
		h.Since, h.Age = b.since(u.since)
	}
	if state != healthscope.Ready {
		m := u.worst.member
		h.Reason = string(m.Reason)
		h.Message = m.String() + " of " + u.worst.App + " in " + u.worst.Cluster + ": " + cmp.Or(m.Cause, m.Message, string(m.Reason))
	}
}

// overall returns the health of everything that the query selects. A failed state of the context counts only if the query has no
// filter.
func (b *builder) overall(u rollup) *Health {
	switch {
	case b.ContextID == "":
		h := &Health{Resources: &Counts{}}
		h.set(healthscope.NotPresent, ReasonNotInstantiated, "it has not been instantiated")
		return h
	case b.Contents == nil:
		h := &Health{Resources: &Counts{}}
		if b.lifecycle.deleting {
			h.set(healthscope.NotPresent, ReasonTerminated, "it has been terminated, and its context is not kept any more")
		} else {
			h.set(healthscope.Unknown, ReasonContextGone, "its context is not kept any more")
		}
		return h
	}
	h := b.health(u)
	failed := b.lifecycle.state == appcontext.StateInstantiateFailed || b.lifecycle.state == appcontext.StateUpdateFailed
	if failed && !b.query.filtered() && h.State != string(healthscope.Failed) {
		h.Since, h.Age = "", nil
		h.set(healthscope.Failed, ReasonRsyncFailed, "the state of the context is "+string(b.lifecycle.state))
	}
	return h
}

// healthOf returns the health of one resource.
func (b *builder) healthOf(r *row) *Health {
	m := r.judged
	h := &Health{State: string(m.State), Reason: string(m.Reason), Message: m.Message, Cause: m.Cause, LastState: string(m.LastState)}
	if r.counts {
		h.CountsAs = string(m.Counts)
	}
	h.Since, h.Age = b.since(m.Since)
	return h
}

// since returns a time as it is served, and its age in seconds. The age of a time in the future is 0.
func (b *builder) since(t time.Time) (string, *int64) {
	if t.IsZero() {
		return "", nil
	}
	age := int64(max(b.Now.Sub(t), 0) / time.Second)
	return wireTime(t), &age
}
