package main

import (
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
)

// conditionText explains a reason of a condition, in Markdown. Its links are relative to the folder of the pages.
type conditionText struct {
	// meaning describes the problem, and advice what to do about it.
	meaning, advice string
	// diagnosis and mitigation have more detail: where to look, and what to do. They are empty when there is no problem.
	diagnosis, mitigation string
}

// conditionTexts has a text for each reason in scope.Conditions.
var conditionTexts = map[string]map[scope.Reason]conditionText{
	corev1alpha2.ConditionReady: {
		scope.ReasonHealthy: {
			meaning: "Enough members are healthy.",
			advice:  "Nothing.",
		},
		scope.ReasonMembersFailed: {
			meaning:    "A member is Failed, and too few members are healthy in the scope or in a required app.",
			advice:     "Look at `status.culprits`; look up the [reason](reasons.md) of the first one.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			mitigation: "Repair the first culprit: look up its [reason](reasons.md). If it does not matter: `spec.rollup.ignore`, or a lower `healthyPercentage`.",
		},
		scope.ReasonMembersPending: {
			meaning:    "No member is Failed, but too few are healthy in the scope or in a required app: some are Pending, and others may be Unknown.",
			advice:     "Wait: members become Ready, or Failed after [a time limit](health.md#time-limits). `status.culprits` names them.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide -w`",
			mitigation: "Wait: members become Ready, or Failed after [a time limit](health.md#time-limits).",
		},
		scope.ReasonRequiredAppMissing: {
			meaning:    "An app in `rollup.required` has no members.",
			advice:     "Check the names in `rollup.required`, and whether the app has been deployed.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.rollup.required}{.status.apps[*].name}'`",
			mitigation: "Correct the names in `rollup.required`, or deploy the app.",
		},
		scope.ReasonNoMembers: {
			meaning:    "The scope, or one of its apps, selects nothing that counts. The message says what was looked for.",
			advice:     "Check references, selectors and labels, and whether the application has been deployed. If an app may be empty, add it to `rollup.ignore`, with its name as `app`.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "The message says what was looked for: see [writing a scope](healthscope.md#writing-a-scope).",
		},
		scope.ReasonMembersUnknown: {
			meaning:    "The scope would be healthy if its Unknown members were.",
			advice:     "Look at `status.culprits` and the condition ClustersReachable: the controller cannot see something. The application may be healthy.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "What ClustersReachable reports; otherwise the culprits: `Forbidden` is [a right](rights.md#other-kinds), `InvalidReference` and `KindNotFound` are usually mistakes in the scope.",
		},
		scope.ReasonTooManyKinds: {
			meaning:    "The same, and the scope refers directly to more than 100 distinct kinds: those after the first 100 are not followed.",
			advice:     "Split the scope, or select bundles.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o yaml`",
			mitigation: "Split the scope, or select bundles: references to 100 distinct kinds are followed.",
		},
		scope.ReasonReferenceCycle: {
			meaning:    "The same, and the scope refers to itself, directly or through other scopes.",
			advice:     "Remove one of the references.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "Remove one of the references between the scopes that have this reason.",
		},
	},
	corev1alpha2.ConditionClustersReachable: {
		scope.ReasonAllReachable: {
			meaning: "Every cluster of the scope is Connected.",
			advice:  "Nothing.",
		},
		scope.Reason(fleet.Connecting): {
			meaning:    "The controller is connecting to a cluster for the first time since it started.",
			advice:     "Nothing.",
			diagnosis:  "`healthscope clusters`",
			mitigation: "Wait some seconds. If this lasts, the message of the cluster names the cause.",
		},
		scope.Reason(fleet.OverBudget): {
			meaning:    "The hub holds more of a cluster than it may, and has cut it off.",
			advice:     "Find out what fills the cluster, or raise the hub's budget.",
			diagnosis:  "`healthscope clusters -o wide`, `kubectl get resourcebundlestates -A --context CONTEXT`",
			mitigation: "Remove what fills the cluster, or raise [`fleet.budget`](configuration.md#fleet).",
		},
		scope.Reason(fleet.MonitorStale): {
			meaning:    "A cluster's monitor does not renew its Lease: bundles may be out of date.",
			advice:     "Look at the monitor there.",
			diagnosis:  "`kubectl get pods,leases -n healthscope-system --context CONTEXT`",
			mitigation: "Start or repair the monitor; its log names the cause.",
		},
		scope.Reason(fleet.MonitorMissing): {
			meaning:    "The Lease of a cluster's monitor is gone, or the cluster does not serve bundles.",
			advice:     "Install the monitor, and its CRDs.",
			diagnosis:  "`kubectl get crd resourcebundlestates.k8splugin.io --context CONTEXT`, `kubectl get lease -n healthscope-system healthscope-monitor --context CONTEXT`",
			mitigation: "Install the monitor, or its CRD. If it runs in another namespace: [`fleet.monitorNamespace`](configuration.md#fleet).",
		},
		scope.Reason(fleet.Forbidden): {
			meaning:    "A cluster refuses the controller.",
			advice:     "See [clusters](clusters.md).",
			diagnosis:  "`healthscope clusters`",
			mitigation: "`healthscope clusters add CLUSTER --context CONTEXT`, with [all the flags](clusters.md#add-a-cluster) of the first time, renews rights and token. For the hub's own cluster: apply the roles of the same version again, with `helm upgrade`.",
		},
		scope.Reason(fleet.Unreachable): {
			meaning:    "A cluster does not answer. Its resources are Unknown; `status.apps[].clusters[].lastSeen` has the time since when, and the culprits have their last known states.",
			advice:     "Repair the cluster or the network. The controller reconnects automatically.",
			diagnosis:  "`healthscope clusters`, then `kubectl get --raw /readyz --context CONTEXT` from where the hub runs",
			mitigation: "The API server, the network, or [the certificate](clusters.md#troubleshooting). The controller retries automatically.",
		},
		scope.Reason(fleet.Refused): {
			meaning:    "The kubeconfig of a cluster is refused.",
			advice:     "See [clusters](clusters.md).",
			diagnosis:  "`kubectl events -n healthscope-clusters --for secret/SECRET`",
			mitigation: "The field that the message names; see [what is refused](clusters.md#what-is-refused).",
		},
		scope.ReasonClusterUnknown: {
			meaning:    "A reference, `expectedClusters` or `clusters.names` names a cluster that the controller does not know. The message names it.",
			advice:     "Correct the name. The name of the controller's own cluster is `clusterName` in [the configuration](configuration.md).",
			diagnosis:  "`healthscope clusters`",
			mitigation: "Correct the name in the scope, or add the cluster.",
		},
	},
	corev1alpha2.ConditionInventorySynced: {
		scope.ReasonSynced: {
			meaning: "A&AI has acknowledged the state of every resource.",
			advice:  "Nothing.",
		},
		scope.ReasonPending: {
			meaning:    "Resources, or the operational status of modules, have not been written yet, or wait for an object that A&AI lacks: cloud region, tenant, VNF or VF module.",
			advice:     "If this lasts, read the message: create what is missing in A&AI, or correct `inventory.regions`.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "If this lasts: create the region, tenant or VNF that the message names in A&AI, or correct `inventory.regions`.",
		},
		scope.ReasonRefused: {
			meaning:    "A&AI has rejected a resource, or the operational status of a module, or an object of another owner has its place. The message says which and why.",
			advice:     "Read the message. The controller retries when the resource changes, and at every resync.",
			diagnosis:  "the list of [rejected changes](inventory.md#rejected-changes)",
			mitigation: "Correct the error that A&AI names; then [request a resync](inventory.md#resync-on-demand).",
		},
		scope.ReasonUnavailable: {
			meaning:    "A&AI cannot be reached or answers with temporary errors, or another server answers.",
			advice:     "Check A&AI and the network. The controller retries automatically: the message says when.",
			diagnosis:  "`kubectl logs -n healthscope-system deploy/healthscope-controller`",
			mitigation: "A&AI, its certificate, a proxy or a network policy.",
		},
		scope.ReasonMisconfigured: {
			meaning:    "A&AI refuses this installation: user, password, certificate, schema version or URL are wrong.",
			advice:     "Correct what the message names in `inventory` of the configuration file, or in the files that it names. The controller reads them again automatically.",
			diagnosis:  "`healthscope aai plan --config FILE`",
			mitigation: "[The part of the configuration](inventory.md#failure-modes) that the message names.",
		},
		scope.ReasonNotListed: {
			meaning:    "Bundles are too large to name all of their resources ([`truncated`](resourcebundlestate.md)), or workloads that the scope selects cannot be read. These resources are missing in A&AI, or out of date.",
			advice:     "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster. For workloads that cannot be read, the scope's culprits name the missing right.",
			diagnosis:  "`kubectl get rbs -n NAMESPACE -o custom-columns=NAME:.metadata.name,TRUNCATED:.status.truncated,RESOURCES:.status.resourceCount`",
			mitigation: "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster.",
		},
		scope.ReasonNoRegion: {
			meaning:    "The configuration names no place in A&AI for a resource of the scope.",
			advice:     "Add an entry to `inventory.regions`, unless the resource should not be in A&AI.",
			diagnosis:  "`healthscope aai plan --config FILE`",
			mitigation: "Add an entry to `inventory.regions`.",
		},
		scope.ReasonLinkDenied: {
			meaning:    "The scope names a VNF that its namespace may not be linked to. Its resources are in A&AI, without the link.",
			advice:     "Add the VNF to `inventory.links` in the configuration file, or remove it from the scope.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.apps[*].inventory.genericVnfId}'`",
			mitigation: "Add the VNF to `inventory.links`, or remove it from the scope.",
		},
	},
	corev1alpha2.ConditionInventoryConflict: {
		scope.ReasonOlderScope: {
			meaning:    "Two scopes, which the message names, have the same resource. In A&AI it has the links of the older scope.",
			advice:     "Nothing, if both scopes name the same VNF. Otherwise remove the resource from one of them.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE` names both scopes",
			mitigation: "Nothing, if both name the same VNF. Otherwise remove the resource from one of them.",
		},
	},
	corev1alpha2.ConditionProbesReady: {
		scope.ReasonProbing: {
			meaning: "Services are probed. The message says how many.",
			advice:  "Nothing.",
		},
		scope.ReasonNoServices: {
			meaning:    "The scope asks for [probes](probes.md), but it has no Service to probe.",
			advice:     "Label the Services, or refer to them.",
			diagnosis:  "`kubectl get services -n NAMESPACE --show-labels`",
			mitigation: "Label the Services with the scope's name as the message says.",
		},
		scope.ReasonServicesUnread: {
			meaning:    "In some clusters the controller cannot read Services, so it does not probe those that a label selects. The message names clusters and causes.",
			advice:     "Give [the right](rights.md#probes), or exclude the cluster with `spec.clusters`.",
			diagnosis:  "`kubectl auth can-i get services/proxy -n NAMESPACE --as=system:serviceaccount:healthscope-system:healthscope-controller`",
			mitigation: "Set the chart's value `probeNamespaces` in the controller's own cluster, `healthscope clusters add --probe-namespaces` for others; or exclude the cluster with `spec.clusters`.",
		},
		scope.ReasonProbesDisabled: {
			meaning:    "The scope asks for probes, but they are disabled in the controller.",
			advice:     "Set `probes.enabled` in [the configuration](configuration.md#probes), or remove `probe-method` and `probe-endpoint` from the spec.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec}'`",
			mitigation: "Set `probes.enabled` in [the configuration](configuration.md#probes), and give the rights; or remove the fields from the spec.",
		},
		scope.ReasonInvalidProbe: {
			meaning:    "A field about probes is invalid, so nothing is probed. The message has each field and its value.",
			advice:     "Correct the fields: see [what can be asked for](probes.md#what-can-be-asked-for).",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "Correct the fields that the message names.",
		},
	},
	corev1alpha2.ConditionStalled: {
		scope.ReasonMembersFailed: {
			meaning:    "A member is Failed, and the scope is unhealthy.",
			advice:     "See the same reason of Ready.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			mitigation: "See the same reason of [Ready](#ready).",
		},
	},
	corev1alpha2.ConditionHealthChecksInvalid: {
		scope.ReasonInvalidExpression: {
			meaning:    "A rule in `healthCheckExprs` is invalid and is ignored: the next rule that matches, or a built-in rule, judges its objects. The message has the rule, the position and the cause.",
			advice:     "Correct the rule in the configuration file, and test it with [`healthscope explain`](commands.md). No restart is needed.",
			diagnosis:  "`healthscope explain --config FILE -f OBJECT`",
			mitigation: "Correct the expression that the message names. The controller reads it again automatically.",
		},
	},
	corev1alpha2.ConditionStatusConflict: {
		scope.ReasonOtherController: {
			meaning:    "Another controller, which the message names, has changed the status three times in a row after HealthScope wrote it. HealthScope now writes the status once in 30 seconds.",
			advice:     "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers).",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE --show-managed-fields -o yaml`",
			mitigation: "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers). The message names it.",
		},
	},
}

// eventTexts describes for each event in scope.Events when the controller emits it.
var eventTexts = map[corev1alpha2.Health]string{
	corev1alpha2.Healthy:       "The scope has become healthy.",
	corev1alpha2.Unhealthy:     "It has become unhealthy.",
	corev1alpha2.UnknownHealth: "Its health is unknown.",
}
