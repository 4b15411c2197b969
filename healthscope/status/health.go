package status

import (
	"cmp"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Reasons that only documents give, besides those of package healthscope.
const (
	// ReasonRsyncPending means that rsync has not applied the resource yet.
	ReasonRsyncPending healthscope.Reason = "RsyncPending"
	// ReasonRsyncRetrying means that rsync tries to apply the resource, and cannot reach the cluster.
	ReasonRsyncRetrying healthscope.Reason = "RsyncRetrying"
	// ReasonRsyncFailed means that the cluster refused what rsync did with the resource.
	ReasonRsyncFailed healthscope.Reason = "RsyncFailed"
	// ReasonUnreadable means that the state of the resource in the context cannot be read.
	ReasonUnreadable healthscope.Reason = "Unreadable"
	// ReasonNotListed means that the bundle is too large to name all its objects, and does not name the resource.
	ReasonNotListed healthscope.Reason = "NotListed"
	// ReasonNotFollowed means that the cluster's monitor does not report resources of the kind.
	ReasonNotFollowed healthscope.Reason = "NotFollowed"
	// ReasonStillPresent means that rsync has deleted the resource, and that it is still there.
	ReasonStillPresent healthscope.Reason = "StillPresent"
	// ReasonTerminated means that the instance has been terminated.
	ReasonTerminated healthscope.Reason = "Terminated"
	// ReasonNotInstantiated means that there has been no instance yet.
	ReasonNotInstantiated healthscope.Reason = "NotInstantiated"
	// ReasonNoMatch means that the filters of the query match nothing.
	ReasonNoMatch healthscope.Reason = "NoMatch"
	// ReasonContextGone means that the context of the instance no longer exists.
	ReasonContextGone healthscope.Reason = "ContextGone"
)

// rsyncTerminated is the name in EMCO's design of the state that EMCO writes as Deleted.
const rsyncTerminated = "Terminated"

// lifecycle is the phase of a context in its life cycle.
type lifecycle struct {
	state appcontext.State
	// deleting is true when the context is being terminated or has been, and terminated when its state is Terminated.
	deleting, terminated bool
	// requestedAt is the time of the last action on the context other than a termination; zero when none is recorded.
	requestedAt time.Time
}

// lifecycleOf returns the phase of a context from its state and its history. The last action of users counts even before rsync starts.
func lifecycleOf(id string, state appcontext.State, actions []appcontext.Action) lifecycle {
	l := lifecycle{state: state, terminated: state == appcontext.StateTerminated}
	for _, a := range actions {
		if a.ContextID != id {
			continue
		}
		l.deleting = a.State == appcontext.ActionTerminated
		if !l.deleting {
			l.requestedAt = a.Time
		}
	}
	l.deleting = l.deleting || l.terminated || state == appcontext.StateTerminating || state == appcontext.StateTerminateFailed
	return l
}

// rsyncWord returns the rsync status of a resource. In a terminated context, every resource is Deleted.
func (l lifecycle) rsyncWord(r *resource) string {
	if l.terminated {
		return string(appcontext.ResourceDeleted)
	}
	return r.rsync
}

// row is a resource of a document that is expected, or in the bundle, or both.
type row struct {
	// expected is nil for a resource that is not in the context, and member for one that is not in the bundle. At least one is set.
	expected *resource
	member   *healthscope.Member
	rsync    string
	presence Presence
	// judged is the health of the resource. counts is true if the resource counts in a rollup. Both are set only with Query.Health.
	judged *healthscope.Member
	counts bool
	// remains is true for a resource that is being deleted and is not known to be gone.
	remains bool
}

// identity returns the identity of the resource. Kind, namespace and name are those of the member if there is one. Group and version are
// those of the context, if it names a version.
func (r *row) identity() identity {
	var id identity
	if r.expected != nil {
		id = r.expected.identity
	}
	if m := r.member; m != nil {
		id.kind, id.namespace, id.name = m.Kind, m.Namespace, m.Name
		if id.version == "" {
			id.group, id.version = m.Group, m.Version
		}
	}
	return id
}

// judgeRow sets the health of a row.
func (b *builder) judgeRow(r *row) {
	switch {
	case b.lifecycle.deleting || deleted(r.rsync):
		r.judged, r.remains = b.judgeDeleting(r)
	case r.rsync == string(appcontext.ResourceFailed):
		message := "rsync could not apply it"
		if r.member != nil {
			message += "; what is there is " + string(r.member.State)
		}
		r.judged, r.counts = b.judgeMissing(r, healthscope.Failed, ReasonRsyncFailed, message), true
	case r.member != nil:
		r.judged, r.counts = r.member, !r.member.Owned
	default:
		r.judged, r.counts = b.judgeAbsent(r)
	}
}

func deleted(rsync string) bool {
	return rsync == string(appcontext.ResourceDeleted) || rsync == rsyncTerminated
}

// judgeDeleting returns the health of a resource that is being deleted, and whether it remains. Such a resource does not count.
func (b *builder) judgeDeleting(r *row) (m *healthscope.Member, remains bool) {
	gone := deleted(r.rsync)
	switch {
	case b.lifecycle.state == appcontext.StateTerminateFailed && r.rsync == string(appcontext.ResourceFailed):
		return b.newMember(r, healthscope.Failed, ReasonRsyncFailed, "rsync could not delete it"), true
	case r.member != nil && r.presence == Present:
		return stillPresent(r.member, gone), true
	case r.member != nil && r.presence == PresenceUnknown:
		return r.member, !gone
	case gone:
		return b.newMember(r, healthscope.NotPresent, ReasonTerminated, ""), false
	case r.presence == NotPresent:
		return b.newMember(r, healthscope.NotPresent, healthscope.ReasonNotFound, ""), false
	default:
		return b.newMember(r, healthscope.Unknown, cmp.Or(b.view.incomplete(), ReasonNotFollowed), b.view.Message), true
	}
}

// stillPresent returns the health of an object that is present and is being deleted. gone means that rsync has deleted it.
func stillPresent(m *healthscope.Member, gone bool) *healthscope.Member {
	if m.State == healthscope.Terminating {
		return m
	}
	marked := *m
	marked.Reason, marked.Message = healthscope.ReasonDeleting, "it is about to be deleted; it is "+string(m.State)
	if gone {
		marked.Reason, marked.Message = ReasonStillPresent, "rsync has deleted it, and it is still there; it is "+string(m.State)
	}
	marked.State, marked.Since, marked.Cause = healthscope.Terminating, time.Time{}, ""
	return &marked
}

// judgeAbsent returns the health of an expected resource that is not in the bundle, and whether it counts.
func (b *builder) judgeAbsent(r *row) (m *healthscope.Member, counts bool) {
	switch r.rsync {
	case string(appcontext.ResourceApplied):
	case string(appcontext.ResourceRetrying):
		return b.judgeMissing(r, healthscope.Pending, ReasonRsyncRetrying, "rsync tries to apply it"), true
	case stateUnreadable:
		return b.judgeMissing(r, healthscope.Unknown, ReasonUnreadable, "its state in the context cannot be read"), true
	default:
		return b.judgeMissing(r, healthscope.Pending, ReasonRsyncPending, "rsync has not applied it yet"), true
	}
	if r.presence == NotPresent {
		return b.judgeMissing(r, healthscope.NotPresent, healthscope.ReasonNotFound, "rsync has applied it, and it is not there"), true
	}
	switch reason := b.view.incomplete(); reason {
	case "":
		return b.judgeMissing(r, healthscope.Unknown, ReasonNotFollowed, "the monitor does not report this kind"), false
	case ReasonNotListed:
		return b.judgeMissing(r, healthscope.Unknown, reason, "the bundle is too large to name it"), false // It may be counted among the unlisted objects.
	default:
		return b.judgeMissing(r, healthscope.Unknown, reason, cmp.Or(b.view.Message, incompleteMessages[reason])), true
	}
}

// incompleteMessages are the messages, by reason, when it is not known whether an object exists.
var incompleteMessages = map[healthscope.Reason]string{
	healthscope.ReasonNotObserved:     "no monitor has reported on the app in this cluster",
	healthscope.ReasonMalformedBundle: "the bundle of the app in this cluster cannot be read",
}

// judgeMissing judges a resource that has the given state and no usable member. Pending and NotPresent are judged as lasting since users
// requested the context, because the policy limits how long a resource may be missing. For a NotPresent resource that counts as Failed, the
// result omits Since, because the resource may have existed until a moment ago.
func (b *builder) judgeMissing(r *row, state healthscope.State, reason healthscope.Reason, message string) *healthscope.Member {
	m := b.newMember(r, state, reason, message)
	if state == healthscope.Pending || state == healthscope.NotPresent {
		m.Since = b.lifecycle.requestedAt
	}
	judged := &healthscope.Judge([]healthscope.Result{m.Result}, b.Policy, b.Now).Members[0]
	if judged.State == healthscope.NotPresent && judged.Counts == healthscope.Failed {
		judged.Since = time.Time{}
	}
	return judged
}

// newMember returns a member for a resource that is not in its bundle.
func (b *builder) newMember(r *row, state healthscope.State, reason healthscope.Reason, message string) *healthscope.Member {
	id := r.identity()
	key := healthscope.Key{Group: id.group, Kind: id.kind, Namespace: id.namespace, Name: id.name}
	return &healthscope.Member{Result: healthscope.Result{Key: key, Version: id.version, State: state, Reason: reason, Message: message}}
}
