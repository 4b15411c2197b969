package scope

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// Explanation says what a reason of a condition means. Its texts are for the documentation: Markdown, whose links lead from the folder of the pages.
type Explanation struct {
	Reason Reason
	// Status is the one that the condition has for the reason.
	Status metav1.ConditionStatus
	// Meaning says what is the matter, and Advice what to do about it.
	Meaning, Advice string
	// Look and Mend say in more detail where to look and what to do. They are empty when nothing is the matter.
	Look, Mend string
}

// Explanations has the reasons of each condition, by its type, in the order of the documentation.
var Explanations = map[string][]Explanation{
	corev1alpha2.ConditionReady: {
		{
			Reason: ReasonHealthy, Status: metav1.ConditionTrue,
			Meaning: "Enough members are healthy.",
			Advice:  "Nothing.",
		},
		{
			Reason: ReasonMembersFailed, Status: metav1.ConditionFalse,
			Meaning: "A member that counts is Failed, and too few are healthy, in the scope or in a required app.",
			Advice:  "Look at `status.culprits`; look up the [reason](reasons.md) of the first one.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			Mend:    "The first culprit, by its [reason](reasons.md). If it does not matter: `spec.rollup.ignore`, or a lower `healthyPercentage`.",
		},
		{
			Reason: ReasonMembersPending, Status: metav1.ConditionFalse,
			Meaning: "None is Failed, and too few are healthy, in the scope or in a required app: some are Pending, and others may be Unknown.",
			Advice:  "Wait: Pending ends by itself, one way or the other, after [a time limit](health.md#time-limits). Look at `status.culprits` if you cannot.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o wide -w`",
			Mend:    "Mostly nothing: it ends by itself, well or as `MembersFailed`, after [a time limit](health.md#time-limits).",
		},
		{
			Reason: ReasonRequiredAppMissing, Status: metav1.ConditionFalse,
			Meaning: "An app in `rollup.required` has no members.",
			Advice:  "Check the names in `rollup.required`, and whether the app has been deployed.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.rollup.required}{.status.apps[*].name}'`",
			Mend:    "The names in `rollup.required`, or deploy the app.",
		},
		{
			Reason: ReasonNoMembers, Status: metav1.ConditionUnknown,
			Meaning: "The scope, or one of its apps, leads to nothing that counts. The message says what was looked for.",
			Advice:  "Check references, selectors and labels, or whether the application has been deployed. An app that may be empty: `rollup.ignore` with its name as `app`.",
			Look:    "`kubectl describe hs -n NAMESPACE SCOPE`",
			Mend:    "What the message says was looked for: [the four ways](healthscope.md#writing-a-scope) to say what belongs to a scope.",
		},
		{
			Reason: ReasonMembersUnknown, Status: metav1.ConditionUnknown,
			Meaning: "Only members that cannot be judged are in the way.",
			Advice:  "The application may be well. Look at `status.culprits` and the condition ClustersReachable: something cannot be seen.",
			Look:    "`kubectl describe hs -n NAMESPACE SCOPE`",
			Mend:    "What ClustersReachable says; else the culprits: `Forbidden` is [a right](rights.md#other-kinds), `InvalidReference` and `KindNotFound` mostly a mistake in the scope.",
		},
		{
			Reason: ReasonTooManyKinds, Status: metav1.ConditionUnknown,
			Meaning: "The same, and the scope refers directly to more than 100 distinct kinds: those after the first 100 are not followed.",
			Advice:  "Make several scopes of it, or select bundles.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o yaml`",
			Mend:    "The kinds in `workloadRefs`: 100 distinct ones are followed. Make several scopes of it, or select bundles.",
		},
		{
			Reason: ReasonReferenceCycle, Status: metav1.ConditionUnknown,
			Meaning: "The same, and the scope refers to itself, directly or through other scopes. The message names the chain.",
			Advice:  "Remove one of the references.",
			Look:    "`kubectl describe hs -n NAMESPACE SCOPE`",
			Mend:    "One of the references between the scopes that the message names.",
		},
	},
	corev1alpha2.ConditionClustersReachable: {
		{
			Reason: ReasonAllReachable, Status: metav1.ConditionTrue,
			Meaning: "Every cluster of the scope is seen as it is now.",
			Advice:  "Nothing.",
		},
		{
			Reason: Reason(fleet.Connecting), Status: metav1.ConditionFalse,
			Meaning: "The controller is connecting to a cluster for the first time since it started.",
			Advice:  "Nothing.",
			Look:    "`healthscope clusters`",
			Mend:    "Nothing, for some seconds. If it stays, its message says what is in the way.",
		},
		{
			Reason: Reason(fleet.OverBudget), Status: metav1.ConditionFalse,
			Meaning: "The hub holds more of a cluster than it may, and has cut it off.",
			Advice:  "See what fills the cluster, or raise the hub's budget.",
			Look:    "`healthscope clusters -o wide`, `kubectl get resourcebundlestates -A --context CONTEXT`",
			Mend:    "Remove what fills the cluster, or raise [`fleet.budget`](configuration.md#fleet).",
		},
		{
			Reason: Reason(fleet.MonitorStale), Status: metav1.ConditionFalse,
			Meaning: "A cluster's monitor does not renew its Lease: what bundles say may be old.",
			Advice:  "Look at the monitor there.",
			Look:    "`kubectl get pods,leases -n healthscope-system --context CONTEXT`",
			Mend:    "Make the monitor run; its log says why it does not.",
		},
		{
			Reason: Reason(fleet.MonitorMissing), Status: metav1.ConditionFalse,
			Meaning: "A cluster's monitor has no Lease any more, or bundles are not served there.",
			Advice:  "Install the monitor, and its CRDs.",
			Look:    "`kubectl get crd resourcebundlestates.k8splugin.io --context CONTEXT`, `kubectl get lease -n healthscope-system healthscope-monitor --context CONTEXT`",
			Mend:    "Install the monitor, or its CRD. If it runs in another namespace: [`fleet.monitorNamespace`](configuration.md#fleet).",
		},
		{
			Reason: Reason(fleet.Forbidden), Status: metav1.ConditionFalse,
			Meaning: "A cluster refuses the controller.",
			Advice:  "See [clusters](clusters.md).",
			Look:    "`healthscope clusters`",
			Mend:    "`healthscope clusters add CLUSTER --context CONTEXT`, with [all the flags](clusters.md#add-a-cluster) it was added with, makes rights and token anew. For the hub's own cluster: apply the roles of the same version again, by `helm upgrade`.",
		},
		{
			Reason: Reason(fleet.Unreachable), Status: metav1.ConditionFalse,
			Meaning: "A cluster does not answer. Its resources are Unknown; `status.apps[].clusters[].lastSeen` says since when, and the culprits how they were seen last.",
			Advice:  "Mend the cluster, or the way to it. Nothing else has to be done.",
			Look:    "`healthscope clusters`, then `kubectl get --raw /readyz --context CONTEXT` from where the hub runs",
			Mend:    "The API server, the network, or [the certificate](clusters.md#troubleshooting). It is tried again by itself.",
		},
		{
			Reason: Reason(fleet.Refused), Status: metav1.ConditionFalse,
			Meaning: "The kubeconfig of a cluster is refused.",
			Advice:  "See [clusters](clusters.md).",
			Look:    "`kubectl events -n healthscope-clusters --for secret/SECRET`",
			Mend:    "The field that the message names; see [what is refused](clusters.md#what-is-refused).",
		},
		{
			Reason: ReasonClusterUnknown, Status: metav1.ConditionFalse,
			Meaning: "A reference or `expectedClusters` names a cluster that the controller does not know. The message names it.",
			Advice:  "Correct the name. The controller's own cluster is called what `clusterName` in [the configuration](configuration.md) says.",
			Look:    "`healthscope clusters`",
			Mend:    "The name in the scope, or add the cluster.",
		},
	},
	corev1alpha2.ConditionInventorySynced: {
		{
			Reason: ReasonSynced, Status: metav1.ConditionTrue,
			Meaning: "A&AI has acknowledged the state of every resource.",
			Advice:  "Nothing.",
		},
		{
			Reason: ReasonPending, Status: metav1.ConditionFalse,
			Meaning: "Resources, or the operational status of modules, wait to be written, or for what they depend on to appear in A&AI: cloud region, tenant, VNF or VF module.",
			Advice:  "If it stays, read the message: create what is missing in A&AI, or correct `inventory.regions`.",
			Look:    "`kubectl describe hs -n NAMESPACE SCOPE`",
			Mend:    "If it stays: create the region, tenant or VNF that the message names in A&AI, or correct `inventory.regions`.",
		},
		{
			Reason: ReasonRefused, Status: metav1.ConditionFalse,
			Meaning: "A&AI refused a resource, or the operational status of a module, for good, or somebody else's object has its place. The message says which and why.",
			Advice:  "Read the message. The resource is tried again when it changes, and at every resync.",
			Look:    "the list of [dead letters](inventory.md#dead-letters)",
			Mend:    "What A&AI complains of; then [ask again](inventory.md#resync-on-demand).",
		},
		{
			Reason: ReasonUnavailable, Status: metav1.ConditionFalse,
			Meaning: "A&AI cannot be reached, or answers with errors that pass.",
			Advice:  "Check A&AI and the way to it. It is tried again by itself, after a minute at most, or when A&AI asked for it.",
			Look:    "`kubectl logs -n healthscope-system deploy/healthscope-controller`",
			Mend:    "A&AI, or the way to it: a network policy, a proxy, its certificate.",
		},
		{
			Reason: ReasonMisconfigured, Status: metav1.ConditionFalse,
			Meaning: "A&AI refuses this installation: user, password, certificate, schema version or URL are wrong.",
			Advice:  "The message says what to correct in `inventory` of the configuration file, or in the files that it names. The controller takes it up by itself.",
			Look:    "`healthscope aai plan --config FILE`",
			Mend:    "[The part of the configuration](inventory.md#what-can-go-wrong) that the message names.",
		},
		{
			Reason: ReasonNotListed, Status: metav1.ConditionFalse,
			Meaning: "Bundles are too large to name all of their resources ([`truncated`](resourcebundlestate.md)). What A&AI has of the others is old, or nothing.",
			Advice:  "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster.",
			Look:    "`kubectl get rbs -n NAMESPACE -o custom-columns=NAME:.metadata.name,TRUNCATED:.status.truncated,RESOURCES:.status.resourceCount`",
			Mend:    "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster.",
		},
		{
			Reason: ReasonNoRegion, Status: metav1.ConditionFalse,
			Meaning: "The configuration names no place in A&AI for a resource of the scope.",
			Advice:  "Add an entry to `inventory.regions`, or leave it if the resource is not to go there.",
			Look:    "`healthscope aai plan --config FILE`",
			Mend:    "An entry in `inventory.regions`.",
		},
		{
			Reason: ReasonLinkDenied, Status: metav1.ConditionFalse,
			Meaning: "The scope names a VNF that its namespace may not be linked to. Its resources are in A&AI, without the link.",
			Advice:  "Add the VNF to `inventory.links` in the configuration file, or take it out of the scope.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.apps[*].inventory.genericVnfId}'`",
			Mend:    "The VNF in `inventory.links`, or take it out of the scope.",
		},
	},
	corev1alpha2.ConditionInventoryConflict: {
		{
			Reason: ReasonOlderScope, Status: metav1.ConditionTrue,
			Meaning: "Two scopes have the same resource. A&AI has it with the links of the older one. The message names both.",
			Advice:  "Nothing, if both scopes name the same VNF. Else take the resource out of one of them.",
			Look:    "`kubectl describe hs -n NAMESPACE SCOPE` names both scopes",
			Mend:    "Nothing if both name the same VNF, else take the resource out of one of them.",
		},
	},
	corev1alpha2.ConditionStalled: {
		{
			Reason: ReasonMembersFailed, Status: metav1.ConditionTrue,
			Meaning: "A member that counts is Failed, and the scope is unhealthy.",
			Advice:  "As for the same reason of Ready.",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			Mend:    "As for the same reason of [Ready](#ready).",
		},
	},
	corev1alpha2.ConditionHealthChecksInvalid: {
		{
			Reason: ReasonInvalidExpression, Status: metav1.ConditionTrue,
			Meaning: "A rule in `healthCheckExprs` cannot be used and is left out: its objects are judged by the next rule that matches, or by the program's own. The message names it and says where and why.",
			Advice:  "Correct it in the configuration file, and test it with [`healthscope explain`](commands.md). No restart is needed.",
			Look:    "`healthscope explain --config FILE -f OBJECT`",
			Mend:    "The expression that the message names. It is read again by itself.",
		},
	},
	corev1alpha2.ConditionStatusContested: {
		{
			Reason: ReasonOtherController, Status: metav1.ConditionTrue,
			Meaning: "Another controller has changed the status three times in a row after HealthScope's wrote it. The message names it. Meanwhile the status is written once in 30 seconds.",
			Advice:  "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers).",
			Look:    "`kubectl get hs -n NAMESPACE SCOPE --show-managed-fields -o yaml`",
			Mend:    "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers). The message names it.",
		},
	},
}

// statusFor returns the status that a condition has for a reason; Unknown when the reason is not explained, which a test does not allow.
func statusFor(condition string, reason Reason) metav1.ConditionStatus {
	for _, e := range Explanations[condition] {
		if e.Reason == reason {
			return e.Status
		}
	}
	return metav1.ConditionUnknown
}

// Event is an event that tells of the health of a scope.
type Event struct {
	Reason Reason
	// Type is the type of the event, Normal or Warning.
	Type string
	// Meaning says for the documentation when the event is made.
	Meaning string
}

// Events are the events that are made when status.health changes, by what it has become.
var Events = map[corev1alpha2.Health]Event{
	corev1alpha2.Healthy:       {ReasonHealthy, corev1.EventTypeNormal, "The scope has become healthy."},
	corev1alpha2.Unhealthy:     {ReasonUnhealthy, corev1.EventTypeWarning, "It has become unhealthy."},
	corev1alpha2.UnknownHealth: {ReasonHealthUnknown, corev1.EventTypeWarning, "Its health cannot be known any more."},
}
