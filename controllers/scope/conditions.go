package scope

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
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

// Reasons of the conditions that are there only when something is the matter.
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
	corev1alpha2.ConditionStalled: {
		{ReasonMembersFailed, metav1.ConditionTrue},
	},
	corev1alpha2.ConditionHealthChecksInvalid: {
		{ReasonInvalidExpression, metav1.ConditionTrue},
	},
	corev1alpha2.ConditionStatusContested: {
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
