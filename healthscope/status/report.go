package status

import (
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// Report describes the bundle of an app in a cluster, as the hub sees it or as it was saved in the context. The zero value
// means that nothing is known.
type Report struct {
	// Namespace is the namespace of the bundle; empty when it is not known.
	Namespace string
	// Members are the judged objects of the bundle, in any order. While the bundle is unreachable, they are as healthscope.MarkUnreachable
	// returns them. The caller must not change them, because other documents reuse the matching that is made from them.
	Members []healthscope.Member
	// Observed is true when a monitor has reported, even if it saw nothing.
	Observed bool
	// Truncated is true when the bundle does not list all its objects. Unlisted counts those that it does not list.
	Truncated bool
	Unlisted  healthscope.Summary
	// Malformed names the parts of the bundle that cannot be read.
	Malformed []string
	// Unreachable is true when the current bundle cannot be read. Reason is the cause in one word, and Message describes it.
	Unreachable bool
	Reason      healthscope.Reason
	Message     string
	// Saved is true when the bundle is the one that was saved in the context, as of LastSeen. SavedReport sets it.
	Saved bool
	// LastSeen is the last time at which the bundle was known to be as in this report; zero when that is not known.
	LastSeen time.Time
	// Bundle holds the whole objects, for output=detail. It may be nil. The caller ensures that it is as current as Members.
	Bundle *Bundle
}

// SavedReport returns a report of a bundle that was saved in the context, for an app in a cluster that the hub itself does not see.
// lastSeen is the time at which it was saved; zero if that is not recorded. EMCO does not record it.
func SavedReport(b *Bundle, policy healthscope.Policy, lastSeen, now time.Time) Report {
	if b == nil {
		return Report{}
	}
	return Report{
		Members: b.judge(policy, now), Observed: b.contents.Observed,
		Truncated: b.contents.Truncated, Unlisted: b.contents.Unlisted, Malformed: b.contents.Malformed,
		Saved: true, LastSeen: lastSeen, Bundle: b,
	}
}

// cachedJudgement is a judgement, with the policy and the time for which it was made.
type cachedJudgement struct {
	healthscope.Judgement

	policy   healthscope.Policy
	judgedAt time.Time
}

// judge returns the judged objects of the bundle. It reuses the last judgement while that is valid.
func (b *Bundle) judge(policy healthscope.Policy, now time.Time) []healthscope.Member {
	if last := b.last.Load(); last != nil && last.isValid(policy, now) {
		return last.Members
	}
	made := &cachedJudgement{Judgement: healthscope.Judge(b.contents.Results, policy, now), policy: policy, judgedAt: now}
	b.last.Store(made)
	return made.Members
}

// isValid reports whether the judgement would be the same with the given policy and time.
func (j *cachedJudgement) isValid(policy healthscope.Policy, now time.Time) bool {
	return policy == j.policy && !now.Before(j.judgedAt) && (j.NextCheck.IsZero() || now.Before(j.NextCheck))
}

// Presence reports whether an object is in its cluster, in the words of EMCO's status design.
type Presence string

// The values of Presence.
const (
	// Present means that the object is in the bundle of its app.
	Present Presence = "Present"
	// NotPresent means that the object is not in the bundle, and would be if it were in the cluster; or that the bundle reports it as not present.
	NotPresent Presence = "NotPresent"
	// PresenceUnknown means that the presence is not known: there is no bundle, it is unreachable, malformed or truncated, its monitor does not
	// follow the kind, or the state of the object is Unknown.
	PresenceUnknown Presence = "Unknown"
)

// followed are the kinds that every monitor follows: every generation of EMCO's monitor, and HealthScope's. An object of these kinds that is
// not in the bundle does not exist. For another kind, this is true only if the bundle contains another object of the kind.
var followed = map[groupKind]bool{
	{"", "ConfigMap"}: true, {"", "Pod"}: true, {"", "Service"}: true,
	{"apps", "DaemonSet"}: true, {"apps", "Deployment"}: true, {"apps", "StatefulSet"}: true,
	{"batch", "Job"}: true,
}

type groupKind struct{ group, kind string }

// view is a report of an app in a cluster, with the matching of its members. The zero value is the view of a zero Report.
type view struct {
	Report
	*matching
}

// setReport sets the report of the view. It ignores a saved report of a terminated context, which shows the state before the termination.
func (v *view) setReport(p *appInCluster, r Report, terminated bool) {
	if terminated && r.Saved {
		r = Report{}
	}
	v.Report, v.matching = r, p.matchingOf(r.Members)
}

// presence returns the presence of an object. m is nil when the object is not in the bundle. followed is true if the object would be in
// the bundle if it existed.
func (v *view) presence(m *healthscope.Member, followed bool) Presence {
	if m != nil {
		switch {
		case v.Unreachable || m.State == healthscope.Unknown:
			return PresenceUnknown
		case m.State == healthscope.NotPresent:
			return NotPresent
		default:
			return Present
		}
	}
	if v.incomplete() != "" || !followed {
		return PresenceUnknown
	}
	return NotPresent
}

// incomplete returns the reason why an object that the report does not name may exist; empty when the report is complete.
func (v *view) incomplete() healthscope.Reason {
	switch {
	case v.Unreachable && v.Reason != "":
		return v.Reason
	case v.Unreachable || !v.Observed:
		return healthscope.ReasonNotObserved
	case len(v.Malformed) > 0:
		return healthscope.ReasonMalformedBundle
	case v.Truncated:
		return ReasonNotListed
	default:
		return ""
	}
}
