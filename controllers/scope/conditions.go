package scope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// conditionState is the reason and the message of a condition; without a message the scope does not have the condition.
type conditionState struct {
	reason  Reason
	message string
}

// setConditions sets the conditions. Their messages hold no time and no random order, so that they change only when the facts do.
func setConditions(s *corev1alpha2.HealthScopeStatus, v judgement, reachable conditionState, o externalStatus, noMembers string, now time.Time) {
	set := func(kind string, reason Reason, message string) {
		if message == "" {
			meta.RemoveStatusCondition(&s.Conditions, kind)
			return
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: statusFor(kind, reason), Reason: string(reason), Message: healthscope.Shorten(message, maxMessage), ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	ready := readyCondition(s, v, noMembers)
	set(corev1alpha2.ConditionReady, ready.reason, ready.message)
	set(corev1alpha2.ConditionClustersReachable, reachable.reason, reachable.message)
	switch i := o.inventory; {
	case i == nil:
		set(corev1alpha2.ConditionInventorySynced, "", "")
		set(corev1alpha2.ConditionInventoryConflict, "", "")
	case i.Waiting: // A restart must not change the conditions for a moment.
	default:
		if i.Reason == "" {
			set(corev1alpha2.ConditionInventorySynced, ReasonSynced, "A&AI holds the state of every resource")
		} else {
			set(corev1alpha2.ConditionInventorySynced, i.Reason, i.Message)
		}
		set(corev1alpha2.ConditionInventoryConflict, ReasonOlderScope, i.Conflict)
	}
	set(corev1alpha2.ConditionProbesReady, v.probesCondition.reason, v.probesCondition.message)
	stalled := ""
	if v.Health == healthscope.Unhealthy && v.summary.Failed > 0 {
		stalled = fmt.Sprintf("%d of %d resources have failed: %s", v.summary.Failed, v.summary.Total, s.FirstCulprit)
	}
	set(corev1alpha2.ConditionStalled, ReasonMembersFailed, stalled)
	set(corev1alpha2.ConditionHealthChecksInvalid, ReasonInvalidExpression, o.healthChecks)
	set(corev1alpha2.ConditionStatusConflict, ReasonOtherController, conflictMessage(v.ConflictsWith))
}

// readyCondition returns the condition Ready. That of a healthy scope names the first resource that is not ready: a rollout that
// has stopped is no outage, but needs attention. It does not name the cause, which changes with every pod of a rollout.
func readyCondition(s *corev1alpha2.HealthScopeStatus, v judgement, noMembers string) conditionState {
	switch v.Health {
	case healthscope.Healthy:
		message := s.ResourcesReady + " resources are ready"
		if at := slices.IndexFunc(v.Members, func(p AppMember) bool { return p.Contributes() && p.State != healthscope.Ready }); at >= 0 {
			p := v.Members[at]
			message += fmt.Sprintf("; not ready is %s/%s in %s: %s", p.Kind, p.Name, p.Cluster, cmp.Or(string(p.Reason), string(p.State)))
		}
		return conditionState{ReasonHealthy, message}
	case healthscope.HealthUnknown:
		return unknownCondition(s, v, noMembers)
	case healthscope.Unhealthy:
	}
	if len(v.missingRequired) > 0 {
		return conditionState{ReasonRequiredAppMissing, missingRequiredLine(v.missingRequired)}
	}
	reason := ReasonMembersPending
	if v.summary.Failed > 0 {
		reason = ReasonMembersFailed
	}
	serving := ""
	if n := v.summary.Healthy - v.summary.Ready; n > 0 { // Without it, the numbers in the message would not add up.
		serving = fmt.Sprintf("; %s pending and serving, %s ready", countWithVerb(n), countWithVerb(v.summary.Ready))
	}
	return conditionState{reason, fmt.Sprintf("%d of %d resources are not healthy%s: %s", v.summary.Total-v.summary.Healthy, v.summary.Total, serving, s.FirstCulprit)}
}

func countWithVerb(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

func unknownCondition(s *corev1alpha2.HealthScopeStatus, v judgement, noMembers string) conditionState {
	if v.summary.Unknown == 0 {
		return conditionState{ReasonNoMembers, noMembers}
	}
	for _, ofScope := range []healthscope.Reason{healthscope.ReasonReferenceCycle, healthscope.ReasonTooManyKinds} { // The spec itself is the cause.
		if at := slices.IndexFunc(v.Members, func(p AppMember) bool { return p.Reason == ofScope }); at >= 0 {
			return conditionState{Reason(ofScope), v.Members[at].Message}
		}
	}
	first := "see the culprits"
	if at := slices.IndexFunc(s.Culprits, func(c corev1alpha2.Culprit) bool { return c.State == string(healthscope.Unknown) }); at >= 0 {
		first = culpritLine(s.Culprits[at])
	}
	return conditionState{ReasonMembersUnknown, fmt.Sprintf("%d of %d resources cannot be judged: %s", v.summary.Unknown, v.summary.Total, first)}
}

func culpritLine(c corev1alpha2.Culprit) string {
	if isCluster(c) {
		return shorten(fmt.Sprintf("%s/%s: %s", c.Kind, c.Name, c.Reason))
	}
	return shorten(fmt.Sprintf("%s/%s in %s: %s", c.Kind, c.Name, c.Cluster, cmp.Or(c.Reason, c.State)))
}

func missingRequiredLine(apps []string) string {
	return "no resources in required apps: " + strings.Join(apps, ", ")
}

// noMembersMessage returns the message for a scope or apps without members that count: what was looked for. It is empty when all have members.
func noMembersMessage(scope *corev1alpha2.HealthScope, v judgement) string {
	switch {
	case v.summary.Total > 0 && len(v.emptyApps) == 0:
		return ""
	case v.summary.Total > 0:
		return "nothing belongs to " + emptyAppsMessage(scope, v)
	case len(v.Members) > 0:
		return fmt.Sprintf("no resource counts: rollup.ignore matches each of the %d resources that do", len(v.Members))
	}
	var parts []string
	if v.probesCondition.message != "" {
		parts = append(parts, v.probesCondition.message) // The line in a list is cut, and this is what the scope asks for.
	}
	if len(scope.Spec.Apps) > 0 {
		parts = append(parts, emptyAppsMessage(scope, v))
	} else {
		parts = append(parts, "the spec has no references and no apps")
	}
	parts = append(parts, fmt.Sprintf("no bundle in namespace %q%s has %s", scope.Namespace, selectedClustersSuffix(scope.Spec.Clusters), scopeLabelsText(scope)))
	if len(scope.Spec.ExpectedClusters) > 0 {
		parts = append(parts, "expectedClusters says where apps are expected, and not which")
	}
	return "nothing belongs to the scope: " + strings.Join(parts, "; ")
}

func emptyAppsMessage(scope *corev1alpha2.HealthScope, v judgement) string {
	var parts []string
	for _, a := range scope.Spec.Apps {
		if !slices.Contains(v.emptyApps, a.Name) {
			continue
		}
		in := fmt.Sprintf("in namespace %q%s has the labels ", scope.Namespace, selectedClustersSuffix(scope.Spec.Clusters, a.Clusters))
		var why []string
		if a.Selector != nil {
			why = append(why, "no bundle "+in+metav1.FormatLabelSelector(a.Selector))
		}
		switch s := a.WorkloadSelector; {
		case s != nil:
			var kinds []string
			gvks, _ := workloadKinds(s)
			for _, gvk := range gvks {
				kinds = append(kinds, gvk.Kind)
			}
			why = append(why, "no "+strings.Join(kinds, ", ")+" "+in+metav1.FormatLabelSelector(&s.LabelSelector))
		case a.Selector != nil:
			why = append(why, "to select workloads, use workloadSelector")
		default:
			why = append(why, "it has no references and no selector")
		}
		parts = append(parts, fmt.Sprintf("app %q (%s)", a.Name, strings.Join(why, "; ")))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// selectedClustersSuffix returns the words for a message that only selected clusters were searched; empty when there is no selection.
func selectedClustersSuffix(selections ...*corev1alpha2.ClusterSelection) string {
	if slices.ContainsFunc(selections, func(s *corev1alpha2.ClusterSelection) bool { return s != nil }) {
		return " of the clusters that are selected"
	}
	return ""
}

// scopeLabelsText names the labels that lead to a scope.
func scopeLabelsText(scope *corev1alpha2.HealthScope) string {
	return fmt.Sprintf("the label %s=%s or %s%s=true", corev1alpha2.LabelScopeName, scope.Name, corev1alpha2.LabelScopePrefix, scope.Name)
}
