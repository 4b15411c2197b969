package status

import (
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// Report is what is known of an app in a cluster: of the bundle there, as the hub sees it, or as it was saved in the
// context. The zero value says that nothing is known.
type Report struct {
	// Namespace is that of the bundle; empty where it is not known.
	Namespace string
	// Members are the objects of the bundle, judged; while they cannot be seen, as healthscope.MarkUnreachable returns them. Their order
	// makes no difference. They must not be changed any more: what was made of them is used again for other documents.
	Members []healthscope.Member
	// Observed is true when a monitor has reported, even if it saw nothing.
	Observed bool
	// Truncated is true when the bundle does not name all its objects, and Unlisted counts those that it does not name.
	Truncated bool
	Unlisted  healthscope.Summary
	// Malformed names what in the bundle cannot be read.
	Malformed []string
	// Unreachable is true when the bundle cannot be seen as it is now; Reason says why in a word, Message for people.
	Unreachable bool
	Reason      healthscope.Reason
	Message     string
	// Saved is true when this is what was saved in the context, and is as old as LastSeen says. SavedReport sets it.
	Saved bool
	// LastSeen is when the bundle was known last to be as it is shown here. Zero means that it is not known.
	LastSeen time.Time
	// Bundle has the whole objects, for output=detail. It may be nil. Who sets it answers for its being as current as Members.
	Bundle *Bundle
}

// SavedReport makes a report of a bundle that was saved in the context, for a place that the hub itself does not see.
// lastSeen is when it was saved, if that was recorded; EMCO does not.
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

// cachedJudgement is a judgement, and what it was made with.
type cachedJudgement struct {
	healthscope.Judgement

	policy   healthscope.Policy
	judgedAt time.Time
	// timeDependent is true when something has taken the time of the judgement for its own, which lay in the future.
	timeDependent bool
}

// judge judges what the bundle says, unless that was done before and still holds.
func (b *Bundle) judge(policy healthscope.Policy, now time.Time) []healthscope.Member {
	if last := b.last.Load(); last != nil && last.isValid(policy, now) {
		return last.Members
	}
	made := &cachedJudgement{Judgement: healthscope.Judge(b.contents.Results, policy, now), policy: policy, judgedAt: now}
	for i := range made.Members {
		made.timeDependent = made.timeDependent || made.Members[i].Since.Equal(now)
	}
	b.last.Store(made)
	return made.Members
}

// isValid reports whether a judgement would be the same with a policy, at a time.
func (j *cachedJudgement) isValid(policy healthscope.Policy, now time.Time) bool {
	return !j.timeDependent && policy == j.policy && !now.Before(j.judgedAt) && (j.NextCheck.IsZero() || now.Before(j.NextCheck))
}

// Presence reports whether an object is in its cluster, in the words of EMCO's status design.
type Presence string

// The words for presence.
const (
	// Present means that the object is in the bundle of its app.
	Present Presence = "Present"
	// NotPresent means that it is not, and would be if it were in the cluster.
	NotPresent Presence = "NotPresent"
	// PresenceUnknown means that it is not known: there is no bundle, it cannot be seen, it leaves objects out, or its monitor does not follow the kind.
	PresenceUnknown Presence = "Unknown"
)

// followed are the kinds that every monitor follows, EMCO's of every generation and ours: if there is a bundle, objects of
// these kinds that are not in it do not exist. Of another kind that is so only if another object of the kind is in the bundle.
var followed = map[groupKind]bool{
	{"", "ConfigMap"}: true, {"", "Pod"}: true, {"", "Service"}: true,
	{"apps", "DaemonSet"}: true, {"apps", "Deployment"}: true, {"apps", "StatefulSet"}: true,
	{"batch", "Job"}: true,
}

type groupKind struct{ group, kind string }

// view is a report of a place, ready to be asked about single objects. The zero value is that of a zero report.
type view struct {
	Report
	*matching
}

// setReport turns the view to another report. Of a context that is terminated, what was saved before says nothing.
func (v *view) setReport(p *appInCluster, r Report, terminated bool) {
	if terminated && r.Saved {
		r = Report{}
	}
	v.Report, v.matching = r, p.matchingOf(r.Members)
}

// unexpectedMembers returns the indexes of the members that are not expected.
func (v *view) unexpectedMembers() []int {
	if v.matching == nil {
		return nil
	}
	return v.unexpected
}

// presence reports whether an object is in the cluster. m is nil when it is not in the bundle, and followed reports whether it would
// be if it existed.
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

// incomplete returns the reason why an object may exist that the report does not name; empty when the report is complete.
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
