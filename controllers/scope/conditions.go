package scope

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// Reason says in one CamelCase word why a condition of a HealthScope has its status, or why an event is made. Besides those below, the values of
// fleet.Reachability are reasons of the condition ClustersReachable.
type Reason string

// Reasons of the condition Ready. ReasonHealthy is also that of an event, and ReasonMembersFailed that of the condition Stalled.
const (
	ReasonHealthy            Reason = "Healthy"
	ReasonMembersFailed      Reason = "MembersFailed"
	ReasonMembersPending     Reason = "MembersPending"
	ReasonRequiredAppMissing Reason = "RequiredAppMissing"
	ReasonNoMembers          Reason = "NoMembers"
	ReasonMembersUnknown     Reason = "MembersUnknown"
	ReasonTooManyKinds       Reason = "TooManyKinds"
	ReasonReferenceCycle     Reason = "ReferenceCycle"
)

// Reasons of the condition ClustersReachable. ReasonClusterUnknown is worse than any fleet.Reachability.
const (
	ReasonAllReachable   Reason = "AllReachable"
	ReasonClusterUnknown Reason = "ClusterUnknown"
)

// Reasons of the condition InventorySynced. All but ReasonSynced are given by the inventory.
const (
	ReasonSynced        Reason = "Synced"
	ReasonMisconfigured Reason = "Misconfigured"
	ReasonUnavailable   Reason = "Unavailable"
	ReasonRefused       Reason = "Refused"
	ReasonPending       Reason = "Pending"
	ReasonNotListed     Reason = "NotListed"
	ReasonNoRegion      Reason = "NoRegion"
	ReasonLinkDenied    Reason = "LinkDenied"
)

// Reasons of the condition ProbesReady.
const (
	ReasonProbing        Reason = "Probing"
	ReasonNoServices     Reason = "NoServices"
	ReasonServicesUnread Reason = "ServicesUnread"
	ReasonProbesDisabled Reason = "ProbesDisabled"
	ReasonInvalidProbe   Reason = "InvalidProbe"
)

// Reasons of the conditions that exist only while they are True.
const (
	ReasonOlderScope        Reason = "OlderScope"
	ReasonInvalidExpression Reason = "InvalidExpression"
	ReasonOtherController   Reason = "OtherController"
)

// Reasons of events, besides ReasonHealthy.
const (
	ReasonUnhealthy     Reason = "Unhealthy"
	ReasonHealthUnknown Reason = "HealthUnknown"
)

// ConditionReason is a reason of a condition, with the status that the condition has for it.
type ConditionReason struct {
	Reason Reason
	Status metav1.ConditionStatus
}

// Conditions has the reasons of each condition, by its type, in the order of the documentation. What they mean is in config/tables.
var Conditions = map[string][]ConditionReason{
	corev1alpha2.ConditionReady: {
		{ReasonHealthy, metav1.ConditionTrue},
		{ReasonMembersFailed, metav1.ConditionFalse},
		{ReasonMembersPending, metav1.ConditionFalse},
		{ReasonRequiredAppMissing, metav1.ConditionFalse},
		{ReasonNoMembers, metav1.ConditionUnknown},
		{ReasonMembersUnknown, metav1.ConditionUnknown},
		{ReasonTooManyKinds, metav1.ConditionUnknown},
		{ReasonReferenceCycle, metav1.ConditionUnknown},
	},
	corev1alpha2.ConditionClustersReachable: {
		{ReasonAllReachable, metav1.ConditionTrue},
		{Reason(fleet.Connecting), metav1.ConditionFalse},
		{Reason(fleet.OverBudget), metav1.ConditionFalse},
		{Reason(fleet.MonitorStale), metav1.ConditionFalse},
		{Reason(fleet.MonitorMissing), metav1.ConditionFalse},
		{Reason(fleet.Forbidden), metav1.ConditionFalse},
		{Reason(fleet.Unreachable), metav1.ConditionFalse},
		{Reason(fleet.Refused), metav1.ConditionFalse},
		{ReasonClusterUnknown, metav1.ConditionFalse},
	},
	corev1alpha2.ConditionInventorySynced: {
		{ReasonSynced, metav1.ConditionTrue},
		{ReasonPending, metav1.ConditionFalse},
		{ReasonRefused, metav1.ConditionFalse},
		{ReasonUnavailable, metav1.ConditionFalse},
		{ReasonMisconfigured, metav1.ConditionFalse},
		{ReasonNotListed, metav1.ConditionFalse},
		{ReasonNoRegion, metav1.ConditionFalse},
		{ReasonLinkDenied, metav1.ConditionFalse},
	},
	corev1alpha2.ConditionInventoryConflict: {
		{ReasonOlderScope, metav1.ConditionTrue},
	},
	corev1alpha2.ConditionProbesReady: {
		{ReasonProbing, metav1.ConditionTrue},
		{ReasonNoServices, metav1.ConditionFalse},
		{ReasonServicesUnread, metav1.ConditionFalse},
		{ReasonProbesDisabled, metav1.ConditionFalse},
		{ReasonInvalidProbe, metav1.ConditionFalse},
	},
	corev1alpha2.ConditionStalled: {
		{ReasonMembersFailed, metav1.ConditionTrue},
	},
	corev1alpha2.ConditionHealthChecksInvalid: {
		{ReasonInvalidExpression, metav1.ConditionTrue},
	},
	corev1alpha2.ConditionStatusConflict: {
		{ReasonOtherController, metav1.ConditionTrue},
	},
}

// statusFor returns the status that a condition has for a reason.
func statusFor(condition string, reason Reason) metav1.ConditionStatus {
	for _, r := range Conditions[condition] {
		if r.Reason == reason {
			return r.Status
		}
	}
	return metav1.ConditionUnknown // A test does not allow a reason that is not in the table.
}

// Event is an event on a change of the health of a scope.
type Event struct {
	Reason Reason
	// Type is the type of the event, Normal or Warning.
	Type string
}

// Events are the events for changes of status.health, by its new value.
var Events = map[corev1alpha2.Health]Event{
	corev1alpha2.Healthy:       {ReasonHealthy, corev1.EventTypeNormal},
	corev1alpha2.Unhealthy:     {ReasonUnhealthy, corev1.EventTypeWarning},
	corev1alpha2.UnknownHealth: {ReasonHealthUnknown, corev1.EventTypeWarning},
}

// setConditions sets the conditions. Their messages hold no time and no random order, so that they change only when the facts do.
func setConditions(s *corev1alpha2.HealthScopeStatus, v judgement, reach clusterReachability, o externalStatus, noMembers string, now time.Time) {
	set := func(kind string, reason Reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: statusFor(kind, reason), Reason: string(reason), Message: healthscope.Shorten(message, maxMessage), ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	// setWhileTrue is for the conditions that exist only while they are True.
	setWhileTrue := func(kind string, reason Reason, message string) {
		if message == "" {
			meta.RemoveStatusCondition(&s.Conditions, kind)
			return
		}
		set(kind, reason, message)
	}
	reason, message := readyReason(s, v, noMembers)
	set(corev1alpha2.ConditionReady, reason, message)
	set(corev1alpha2.ConditionClustersReachable, reach.reason, reach.message)
	switch i := o.inventory; {
	case i == nil:
		meta.RemoveStatusCondition(&s.Conditions, corev1alpha2.ConditionInventorySynced)
		meta.RemoveStatusCondition(&s.Conditions, corev1alpha2.ConditionInventoryConflict)
	case i.Waiting: // A restart must not change the conditions for a moment.
	case i.Reason == "":
		set(corev1alpha2.ConditionInventorySynced, ReasonSynced, "A&AI holds the state of every resource")
		setWhileTrue(corev1alpha2.ConditionInventoryConflict, ReasonOlderScope, i.Conflict)
	default:
		set(corev1alpha2.ConditionInventorySynced, i.Reason, i.Message)
		setWhileTrue(corev1alpha2.ConditionInventoryConflict, ReasonOlderScope, i.Conflict)
	}
	if v.probesCondition.reason == "" {
		meta.RemoveStatusCondition(&s.Conditions, corev1alpha2.ConditionProbesReady)
	} else {
		set(corev1alpha2.ConditionProbesReady, v.probesCondition.reason, v.probesCondition.message)
	}
	setWhileTrue(corev1alpha2.ConditionStalled, ReasonMembersFailed, stalledMessage(s, v))
	setWhileTrue(corev1alpha2.ConditionHealthChecksInvalid, ReasonInvalidExpression, o.healthChecks)
	setWhileTrue(corev1alpha2.ConditionStatusConflict, ReasonOtherController, conflictMessage(o.conflictsWith))
}

// readyReason returns the reason and message of the condition Ready.
func readyReason(s *corev1alpha2.HealthScopeStatus, v judgement, noMembers string) (reason Reason, message string) {
	switch v.health {
	case healthscope.Healthy:
		return ReasonHealthy, s.ResourcesReady + " resources are ready" + notReadySuffix(v)
	case healthscope.HealthUnknown:
		return unknownReason(s, v, noMembers)
	case healthscope.Unhealthy:
	}
	return unhealthyReason(s, v)
}

// notReadySuffix names the first resource of a healthy scope that is not ready: a rollout that has stopped is no outage, but needs attention.
// It is empty when all are ready. It does not name the cause, which changes with every pod of a rollout.
func notReadySuffix(v judgement) string {
	at := slices.IndexFunc(v.members, func(p AppMember) bool { return p.Contributes() && p.State != healthscope.Ready })
	if at < 0 {
		return ""
	}
	p := v.members[at]
	return fmt.Sprintf("; not ready is %s/%s in %s: %s", p.Kind, p.Name, p.Cluster, cmp.Or(string(p.Reason), string(p.State)))
}

// unhealthyReason returns the reason and message of the condition Ready of an unhealthy scope.
func unhealthyReason(s *corev1alpha2.HealthScopeStatus, v judgement) (reason Reason, message string) {
	if len(v.missingRequired) > 0 {
		return ReasonRequiredAppMissing, missingRequiredLine(v.missingRequired)
	}
	reason = ReasonMembersPending
	if v.summary.Failed > 0 {
		reason = ReasonMembersFailed
	}
	serving := ""
	if n := v.summary.Healthy - v.summary.Ready; n > 0 { // Without it, the numbers in the message would not add up.
		serving = fmt.Sprintf("; %s pending and serving, %s ready", countWithVerb(n), countWithVerb(v.summary.Ready))
	}
	return reason, fmt.Sprintf("%d of %d resources are not healthy%s: %s", v.summary.Total-v.summary.Healthy, v.summary.Total, serving, s.FirstCulprit)
}

// countWithVerb returns a number with "is" or "are".
func countWithVerb(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// stalledMessage returns the message of the condition Stalled; it is empty when no member has failed, or when the scope is not unhealthy.
func stalledMessage(s *corev1alpha2.HealthScopeStatus, v judgement) string {
	if v.health != healthscope.Unhealthy || v.summary.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d resources have failed: %s", v.summary.Failed, v.summary.Total, s.FirstCulprit)
}

// unknownReason returns the reason and message of the condition Ready of a scope whose health is unknown.
func unknownReason(s *corev1alpha2.HealthScopeStatus, v judgement, noMembers string) (reason Reason, message string) {
	if v.summary.Unknown == 0 {
		return ReasonNoMembers, noMembers
	}
	for _, ofScope := range []healthscope.Reason{healthscope.ReasonReferenceCycle, healthscope.ReasonTooManyKinds} { // The spec itself is the cause.
		if at := slices.IndexFunc(v.members, func(p AppMember) bool { return p.Reason == ofScope }); at >= 0 {
			return Reason(ofScope), v.members[at].Message
		}
	}
	return ReasonMembersUnknown, fmt.Sprintf("%d of %d resources cannot be judged: %s", v.summary.Unknown, v.summary.Total, firstUnknown(s.Culprits))
}

// firstUnknown returns the first culprit that cannot be judged, in one line.
func firstUnknown(culprits []corev1alpha2.Culprit) string {
	for _, c := range culprits {
		if c.State == string(healthscope.Unknown) {
			return culpritLine(c)
		}
	}
	return "see the culprits"
}
