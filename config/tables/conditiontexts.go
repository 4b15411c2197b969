package main

import (
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
)

// conditionText says what a reason of a condition means: Markdown, whose links lead from the folder of the pages.
type conditionText struct {
	// meaning says what is the matter, and advice what to do about it.
	meaning, advice string
	// diagnosis and mitigation say in more detail where to look and what to do. They are empty when nothing is the matter.
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
			meaning:    "A member that counts is Failed, and too few are healthy, in the scope or in a required app.",
			advice:     "Look at `status.culprits`; look up the [reason](reasons.md) of the first one.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			mitigation: "The first culprit, by its [reason](reasons.md). If it does not matter: `spec.rollup.ignore`, or a lower `healthyPercentage`.",
		},
		scope.ReasonMembersPending: {
			meaning:    "None is Failed, and too few are healthy, in the scope or in a required app: some are Pending, and others may be Unknown.",
			advice:     "Wait: Pending ends, one way or the other, after [a time limit](health.md#time-limits). Look at `status.culprits` if you cannot.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide -w`",
			mitigation: "Mostly nothing: it ends well, or as `MembersFailed` after [a time limit](health.md#time-limits).",
		},
		scope.ReasonRequiredAppMissing: {
			meaning:    "An app in `rollup.required` has no members.",
			advice:     "Check the names in `rollup.required`, and whether the app has been deployed.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.rollup.required}{.status.apps[*].name}'`",
			mitigation: "The names in `rollup.required`, or deploy the app.",
		},
		scope.ReasonNoMembers: {
			meaning:    "The scope, or one of its apps, leads to nothing that counts. The message says what was looked for.",
			advice:     "Check references, selectors and labels, or whether the application has been deployed. An app that may be empty: `rollup.ignore` with its name as `app`.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "What the message says was looked for: see [how to say](healthscope.md#writing-a-scope) what belongs to a scope.",
		},
		scope.ReasonMembersUnknown: {
			meaning:    "Only members that cannot be judged are in the way.",
			advice:     "The application may be well. Look at `status.culprits` and the condition ClustersReachable: something cannot be seen.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "What ClustersReachable says; else the culprits: `Forbidden` is [a right](rights.md#other-kinds), `InvalidReference` and `KindNotFound` mostly a mistake in the scope.",
		},
		scope.ReasonTooManyKinds: {
			meaning:    "The same, and the scope refers directly to more than 100 distinct kinds: those after the first 100 are not followed.",
			advice:     "Make several scopes of it, or select bundles.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o yaml`",
			mitigation: "The kinds in `workloadRefs`: 100 distinct ones are followed. Make several scopes of it, or select bundles.",
		},
		scope.ReasonReferenceCycle: {
			meaning:    "The same, and the scope refers to itself, directly or through other scopes. The message names the chain.",
			advice:     "Remove one of the references.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "One of the references between the scopes that the message names.",
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
			mitigation: "Nothing, for some seconds. If it stays, its message says what is in the way.",
		},
		scope.Reason(fleet.OverBudget): {
			meaning:    "The hub holds more of a cluster than it may, and has cut it off.",
			advice:     "See what fills the cluster, or raise the hub's budget.",
			diagnosis:  "`healthscope clusters -o wide`, `kubectl get resourcebundlestates -A --context CONTEXT`",
			mitigation: "Remove what fills the cluster, or raise [`fleet.budget`](configuration.md#fleet).",
		},
		scope.Reason(fleet.MonitorStale): {
			meaning:    "A cluster's monitor does not renew its Lease: what bundles say may be old.",
			advice:     "Look at the monitor there.",
			diagnosis:  "`kubectl get pods,leases -n healthscope-system --context CONTEXT`",
			mitigation: "Make the monitor run; its log says why it does not.",
		},
		scope.Reason(fleet.MonitorMissing): {
			meaning:    "A cluster's monitor has no Lease any more, or bundles are not served there.",
			advice:     "Install the monitor, and its CRDs.",
			diagnosis:  "`kubectl get crd resourcebundlestates.k8splugin.io --context CONTEXT`, `kubectl get lease -n healthscope-system healthscope-monitor --context CONTEXT`",
			mitigation: "Install the monitor, or its CRD. If it runs in another namespace: [`fleet.monitorNamespace`](configuration.md#fleet).",
		},
		scope.Reason(fleet.Forbidden): {
			meaning:    "A cluster refuses the controller.",
			advice:     "See [clusters](clusters.md).",
			diagnosis:  "`healthscope clusters`",
			mitigation: "`healthscope clusters add CLUSTER --context CONTEXT`, with [all the flags](clusters.md#add-a-cluster) it was added with, renews rights and token. For the hub's own cluster: apply the roles of the same version again, by `helm upgrade`.",
		},
		scope.Reason(fleet.Unreachable): {
			meaning:    "A cluster does not answer. Its resources are Unknown; `status.apps[].clusters[].lastSeen` says since when, and the culprits how they were seen last.",
			advice:     "Repair the cluster, or the way to it. Nothing else has to be done.",
			diagnosis:  "`healthscope clusters`, then `kubectl get --raw /readyz --context CONTEXT` from where the hub runs",
			mitigation: "The API server, the network, or [the certificate](clusters.md#troubleshooting). It is tried again automatically.",
		},
		scope.Reason(fleet.Refused): {
			meaning:    "The kubeconfig of a cluster is refused.",
			advice:     "See [clusters](clusters.md).",
			diagnosis:  "`kubectl events -n healthscope-clusters --for secret/SECRET`",
			mitigation: "The field that the message names; see [what is refused](clusters.md#what-is-refused).",
		},
		scope.ReasonClusterUnknown: {
			meaning:    "A reference, `expectedClusters` or `clusters.names` names a cluster that the controller does not know. The message names it.",
			advice:     "Correct the name. The controller's own cluster is called what `clusterName` in [the configuration](configuration.md) says.",
			diagnosis:  "`healthscope clusters`",
			mitigation: "The name in the scope, or add the cluster.",
		},
	},
	corev1alpha2.ConditionInventorySynced: {
		scope.ReasonSynced: {
			meaning: "A&AI has acknowledged the state of every resource.",
			advice:  "Nothing.",
		},
		scope.ReasonPending: {
			meaning:    "Resources, or the operational status of modules, wait to be written, or for what they depend on to appear in A&AI: cloud region, tenant, VNF or VF module.",
			advice:     "If it stays, read the message: create what is missing in A&AI, or correct `inventory.regions`.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "If it stays: create the region, tenant or VNF that the message names in A&AI, or correct `inventory.regions`.",
		},
		scope.ReasonRefused: {
			meaning:    "A&AI has rejected a resource, or the operational status of a module, or an object of another owner has its place. The message says which and why.",
			advice:     "Read the message. The resource is tried again when it changes, and at every resync.",
			diagnosis:  "the list of [rejected changes](inventory.md#rejected-changes)",
			mitigation: "What A&AI complains of; then [ask again](inventory.md#resync-on-demand).",
		},
		scope.ReasonUnavailable: {
			meaning:    "A&AI cannot be reached, answers with errors that pass, or something else answers in its place.",
			advice:     "Check A&AI and the way to it. It is tried again automatically: the message says when.",
			diagnosis:  "`kubectl logs -n healthscope-system deploy/healthscope-controller`",
			mitigation: "A&AI, or the way to it: a network policy, a proxy, its certificate.",
		},
		scope.ReasonMisconfigured: {
			meaning:    "A&AI refuses this installation: user, password, certificate, schema version or URL are wrong.",
			advice:     "The message says what to correct in `inventory` of the configuration file, or in the files that it names. The controller picks it up automatically.",
			diagnosis:  "`healthscope aai plan --config FILE`",
			mitigation: "[The part of the configuration](inventory.md#failure-modes) that the message names.",
		},
		scope.ReasonNotListed: {
			meaning:    "Bundles are too large to name all of their resources ([`truncated`](resourcebundlestate.md)), or workloads that the scope selects cannot be read. What A&AI has of the others is old, or nothing.",
			advice:     "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster. Of workloads that cannot be read, the scope's culprits name the right that is missing.",
			diagnosis:  "`kubectl get rbs -n NAMESPACE -o custom-columns=NAME:.metadata.name,TRUNCATED:.status.truncated,RESOURCES:.status.resourceCount`",
			mitigation: "Split the application, so that each part has a bundle of its own, or raise [`monitor.limitKiB`](configuration.md#monitor) in its cluster.",
		},
		scope.ReasonNoRegion: {
			meaning:    "The configuration names no place in A&AI for a resource of the scope.",
			advice:     "Add an entry to `inventory.regions`, or leave it if the resource is not to go there.",
			diagnosis:  "`healthscope aai plan --config FILE`",
			mitigation: "An entry in `inventory.regions`.",
		},
		scope.ReasonLinkDenied: {
			meaning:    "The scope names a VNF that its namespace may not be linked to. Its resources are in A&AI, without the link.",
			advice:     "Add the VNF to `inventory.links` in the configuration file, or take it out of the scope.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec.apps[*].inventory.genericVnfId}'`",
			mitigation: "The VNF in `inventory.links`, or take it out of the scope.",
		},
	},
	corev1alpha2.ConditionInventoryConflict: {
		scope.ReasonOlderScope: {
			meaning:    "Two scopes have the same resource. A&AI has it with the links of the older one. The message names both.",
			advice:     "Nothing, if both scopes name the same VNF. Else take the resource out of one of them.",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE` names both scopes",
			mitigation: "Nothing if both name the same VNF, else take the resource out of one of them.",
		},
	},
	corev1alpha2.ConditionProbesReady: {
		scope.ReasonProbing: {
			meaning: "Services are probed. The message says how many.",
			advice:  "Nothing.",
		},
		scope.ReasonNoServices: {
			meaning:    "The scope asks for [probes](probes.md), and no Service is to be probed for it.",
			advice:     "Label the Services, or refer to them.",
			diagnosis:  "`kubectl get services -n NAMESPACE --show-labels`",
			mitigation: "Label the Services with the scope's name as the message says.",
		},
		scope.ReasonServicesUnread: {
			meaning:    "In some clusters the Services cannot be read, so that those that a label would bring in are not probed. The message names clusters and causes.",
			advice:     "Give [the right](rights.md#probes), or leave the cluster out by `spec.clusters`.",
			diagnosis:  "`kubectl auth can-i get services/proxy -n NAMESPACE --as=system:serviceaccount:healthscope-system:healthscope-controller`",
			mitigation: "The chart's value `probeNamespaces` in the controller's own cluster, `healthscope clusters add --probe-namespaces` for others; or leave the cluster out by `spec.clusters`.",
		},
		scope.ReasonProbesDisabled: {
			meaning:    "The scope asks for probes, and the controller makes none.",
			advice:     "Set `probes.enabled` in [the configuration](configuration.md#probes), or remove `probe-method` and `probe-endpoint` from the spec.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o jsonpath='{.spec}'`",
			mitigation: "`probes.enabled` in [the configuration](configuration.md#probes), and the rights; or remove the fields from the spec.",
		},
		scope.ReasonInvalidProbe: {
			meaning:    "A field about probes cannot be used, so that nothing is probed. The message names each with the value.",
			advice:     "Correct the fields: see [what can be asked for](probes.md#what-can-be-asked-for).",
			diagnosis:  "`kubectl describe hs -n NAMESPACE SCOPE`",
			mitigation: "The fields that the message names.",
		},
	},
	corev1alpha2.ConditionStalled: {
		scope.ReasonMembersFailed: {
			meaning:    "A member that counts is Failed, and the scope is unhealthy.",
			advice:     "As for the same reason of Ready.",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE -o wide`",
			mitigation: "As for the same reason of [Ready](#ready).",
		},
	},
	corev1alpha2.ConditionHealthChecksInvalid: {
		scope.ReasonInvalidExpression: {
			meaning:    "A rule in `healthCheckExprs` cannot be used and is left out: its objects are judged by the next rule that matches, or by the program's own. The message names it and says where and why.",
			advice:     "Correct it in the configuration file, and test it with [`healthscope explain`](commands.md). No restart is needed.",
			diagnosis:  "`healthscope explain --config FILE -f OBJECT`",
			mitigation: "The expression that the message names. It is read again automatically.",
		},
	},
	corev1alpha2.ConditionStatusContested: {
		scope.ReasonOtherController: {
			meaning:    "Another controller has changed the status three times in a row after HealthScope's wrote it. The message names it. Meanwhile the status is written once in 30 seconds.",
			advice:     "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers).",
			diagnosis:  "`kubectl get hs -n NAMESPACE SCOPE --show-managed-fields -o yaml`",
			mitigation: "[Turn the other controller off](compatibility.md#beside-other-healthscope-controllers). The message names it.",
		},
	},
}

// eventTexts says for each event in scope.Events when it is made.
var eventTexts = map[corev1alpha2.Health]string{
	corev1alpha2.Healthy:       "The scope has become healthy.",
	corev1alpha2.Unhealthy:     "It has become unhealthy.",
	corev1alpha2.UnknownHealth: "Its health is unknown.",
}
