package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health is the health of a scope in one word, in status.health.
//
// +kubebuilder:validation:Enum=healthy;unhealthy;unknown
type Health string

// The values of Health.
const (
	// Healthy means that every member that counts is healthy.
	Healthy Health = "healthy"
	// Unhealthy means that a member that counts is not healthy.
	Unhealthy Health = "unhealthy"
	// UnknownHealth means that only members that cannot be judged, or apps without members, keep the scope from being healthy, or
	// that it has no members.
	UnknownHealth Health = "unknown"
)

// HealthStatus is the health of a workload or of a scope, in OAM's terms.
//
// +kubebuilder:validation:Enum=HEALTHY;UNHEALTHY;UNKNOWN
type HealthStatus string

// The values of HealthStatus.
const (
	// StatusHealthy is OAM's HEALTHY.
	StatusHealthy HealthStatus = "HEALTHY"
	// StatusUnhealthy is OAM's UNHEALTHY.
	StatusUnhealthy HealthStatus = "UNHEALTHY"
	// StatusUnknown is OAM's UNKNOWN.
	StatusUnknown HealthStatus = "UNKNOWN"
)

// State is the state of a member, or the combined state of several members. In Go it is any string, so that a value of another
// version can be decoded. The API server accepts only the values of the enumeration.
//
// +kubebuilder:validation:Enum=Ready;Pending;Failed;Terminating;NotPresent;Unknown
type State = string

// Types of the conditions of a HealthScope.
const (
	// ConditionReady is True when the scope is healthy, False when it is unhealthy, and Unknown when only members that cannot be
	// judged, or apps without members, keep it from being healthy, or when it has no members.
	ConditionReady = "Ready"
	// ConditionClustersReachable is True when the controller can reach every cluster of the scope, and its data are current.
	ConditionClustersReachable = "ClustersReachable"
	// ConditionInventorySynced is True when A&AI holds the state of every resource of the scope. It is absent when no A&AI is configured.
	ConditionInventorySynced = "InventorySynced"
	// ConditionInventoryConflict is True when a resource of the scope is in A&AI as a resource of an older scope. It is absent
	// otherwise.
	ConditionInventoryConflict = "InventoryConflict"
	// ConditionStalled is True when the scope is unhealthy because members have failed. It is absent otherwise. Tools that follow
	// kstatus stop waiting when it is True.
	ConditionStalled = "Stalled"
	// ConditionHealthChecksInvalid is True when a health check of the configuration cannot be used. It is absent otherwise.
	ConditionHealthChecksInvalid = "HealthChecksInvalid"
	// ConditionStatusConflict is True while another controller writes the status too. It is absent otherwise.
	ConditionStatusConflict = "StatusConflict"
	// ConditionProbesReady is True while the Services of the scope are probed. It is False when they cannot be: the spec is invalid,
	// probes are disabled in the configuration, Services cannot be read, or there are none. It is absent when the spec requests no
	// probes.
	ConditionProbesReady = "ProbesReady"
)

// Limits of the lists in the status. They keep the size of a scope far below the maximum size of an object in etcd.
const (
	// MaxHealthConditions is the maximum number of entries of status.healthConditions.
	MaxHealthConditions = 200
	// MaxAppClusters is the maximum number of clusters of an entry of status.apps.
	MaxAppClusters = 100
	// MaxCulprits is the maximum number of entries of status.culprits.
	MaxCulprits = 50
)

// HealthScopeStatus is the health of a scope. Its lists are sorted, worst first, and have a maximum length. Its counts are exact.
type HealthScopeStatus struct {
	// health is the health of the scope: `healthy`, `unhealthy` or `unknown`. Programs read this field. The value is current if
	// `observedGeneration` equals `metadata.generation`. It is `unknown` if only members that are Unknown, or apps without members,
	// keep the scope from being healthy, or if the scope has no members. The condition `Ready` shows the same with a reason, for
	// tools that wait for conditions.
	// +optional
	Health Health `json:"health,omitempty"`
	// scopeHealthCondition is the health of the scope in OAM's form, for programs written for OAM; others read `health`. It counts
	// references, not resources. A count of zero is absent.
	// +optional
	ScopeHealthCondition ScopeHealthCondition `json:"scopeHealthCondition"`
	// healthConditions are the references with their health, for programs written for OAM; others read `culprits`. There are at most 200.
	// +optional
	// +listType=atomic
	HealthConditions []WorkloadHealthCondition `json:"healthConditions,omitempty"`
	// appHealthConditions are KubeVela's Applications with their health, for programs written for KubeVela; others read `apps` and
	// `culprits`. There is an entry for each Application and environment that the scope refers to, and there are at most 200
	// components in total.
	// +optional
	// +listType=atomic
	AppHealthConditions []AppHealthCondition `json:"appHealthConditions,omitempty"`

	// summary is the number of members that count, by state, for programs to read. A count of zero is present, too.
	// +optional
	Summary MemberCounts `json:"summary,omitzero"`
	// resourcesReady is `ready/total` of the summary, for people and for the columns of kubectl; programs read `summary`.
	// +optional
	ResourcesReady string `json:"resourcesReady,omitempty"`
	// clustersReachable is `reachable/total`: the number of clusters of the scope that can be reached, and the number of all its
	// clusters. It is for people and for the columns of kubectl; programs read the condition `ClustersReachable`.
	// +optional
	ClustersReachable string `json:"clustersReachable,omitempty"`
	// apps are the apps of the scope with their states, for programs that need more than `health`. An app of the spec is listed even
	// if it has no members that count.
	// +optional
	// +listType=atomic
	Apps []AppStatus `json:"apps,omitempty"`
	// culprits are the members that count and are not healthy, worst first, at most 50, for programs to read. A cluster that cannot
	// be reached is a culprit, too: its `kind` is `Cluster`, its `cause` has the number of its resources that are Unknown, and it is
	// listed before all members that are Unknown.
	// +optional
	// +listType=atomic
	Culprits []Culprit `json:"culprits,omitempty"`
	// firstCulprit is the first culprit in one line, for people and for the columns of kubectl; programs read `culprits`. Without
	// culprits, it describes what else keeps the scope from being healthy, such as required apps that are missing. It is absent if
	// there is nothing to describe.
	// +optional
	FirstCulprit string `json:"firstCulprit,omitempty"`
	// inventory is the number of the scope's resources by the state of their synchronization with A&AI, for programs to read. The
	// condition `InventorySynced` has the reason why resources are not synchronized. It is absent if no inventory is configured.
	// +optional
	Inventory *InventoryStatus `json:"inventory,omitempty"`
	// conditions are Kubernetes conditions, for tools that wait for them and for programs that need a reason: Ready, ClustersReachable,
	// InventorySynced, ProbesReady and, when they are True, Stalled, InventoryConflict, HealthChecksInvalid and StatusConflict. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that the status describes; -1 before the scope is judged for the first time.
	// Programs compare it with `metadata.generation` before they read the other fields.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// truncated is true if a list was cut, or if a bundle of the scope does not list all its resources. It is for programs that read
	// the lists. Counts are exact nevertheless.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// MemberCounts is the number of members that count in the health of a scope, by state. A count of zero is present, too.
type MemberCounts struct {
	// state is the worst of the states as which the members count, in the order `Failed`, `Unknown`, `Pending`, `Ready`. Without
	// members it is `Unknown`. `health` may be better than this state, because of `rollup`.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of members that count and are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// pending is the number of members that count and are Pending or Terminating, or have been missing for less than
	// `policy.notPresentGraceSeconds`.
	// +optional
	Pending int32 `json:"pending"`
	// failed is the number of members that count and are Failed, or have been missing for `policy.notPresentGraceSeconds` or longer.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of members that count and cannot be judged.
	// +optional
	Unknown int32 `json:"unknown"`
}

// ScopeHealthCondition is the health of a scope in OAM's form. It counts references, not resources. A count of zero is absent, as
// in OAM.
type ScopeHealthCondition struct {
	// healthStatus is the health of the scope in OAM's terms: `HEALTHY`, `UNHEALTHY` or `UNKNOWN`. Programs that are not written for
	// OAM read `status.health`.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// total is the number of references; `status.summary` counts resources.
	// +optional
	Total int64 `json:"total,omitempty"`
	// healthyWorkloads is the number of references that are `HEALTHY`.
	// +optional
	HealthyWorkloads int64 `json:"healthyWorkloads,omitempty"`
	// unhealthyWorkloads is the number of references that are `UNHEALTHY`.
	// +optional
	UnhealthyWorkloads int64 `json:"unhealthyWorkloads,omitempty"`
	// unknownWorkloads is the number of references that are `UNKNOWN`.
	// +optional
	UnknownWorkloads int64 `json:"unknownWorkloads,omitempty"`
}

// WorkloadHealthCondition is the health of one reference, in OAM's form.
type WorkloadHealthCondition struct {
	// componentName is the name of the OAM component: the one that the reference belongs to, or else the value of the workload's label
	// `app.oam.dev/component`, or else the name of the app.
	// +optional
	ComponentName string `json:"componentName,omitempty"`
	// targetWorkload is the reference, with the uid of what was found.
	// +optional
	TargetWorkload WorkloadReference `json:"targetWorkload,omitzero"`
	// healthStatus is the health of the reference in OAM's terms, for programs written for OAM; others read the `state` of
	// `culprits`: see https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#names-in-other-projects.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// diagnosis explains the health to people: `Ready:<ready>/<desired> `, as in OAM, and the worst problem; or only the reason why the object is
	// Unknown or missing. Programs read `state` and `reason` of `culprits`.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`
	// workloadStatus is the first KiB of the status, as JSON, of an object that no rule can judge, for people. It may be cut, and then is not
	// valid JSON.
	// +optional
	WorkloadStatus string `json:"workloadStatus,omitempty"`
	// customStatusMsg is KubeVela's field: `Ready:<ready>/<desired>`. It is present only in `appHealthConditions`.
	// +optional
	CustomStatusMsg string `json:"customStatusMsg,omitempty"`
	// traits is KubeVela's field. The controller leaves it empty.
	// +optional
	// +listType=atomic
	Traits []TraitHealthCondition `json:"traits,omitempty"`
}

// TraitHealthCondition is the health of one trait of KubeVela. The controller does not write it.
type TraitHealthCondition struct {
	// type is the type of the trait.
	// +optional
	Type string `json:"type,omitempty"`
	// resource is the name of the trait's object.
	// +optional
	Resource string `json:"resource,omitempty"`
	// healthStatus is the health of the trait in OAM's terms.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// diagnosis is the reason for the health.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`
	// customStatusMsg is the message of the trait.
	// +optional
	CustomStatusMsg string `json:"customStatusMsg,omitempty"`
}

// AppHealthCondition is the health of one Application of KubeVela in one environment.
type AppHealthCondition struct {
	// appName is the name of the Application.
	// +optional
	AppName string `json:"appName,omitempty"`
	// envName is the name of KubeVela's environment.
	// +optional
	EnvName string `json:"envName,omitempty"`
	// components are the components of the Application with their health, worst first.
	// +optional
	// +listType=atomic
	Components []WorkloadHealthCondition `json:"components,omitempty"`
}

// AppStatus is the state of one application of a scope.
type AppStatus struct {
	// name is the name of the app; empty for members outside apps.
	// +optional
	Name string `json:"name"`
	// state is the roll-up of the states of the app's members, for programs to read. An app has no other field for its health. The
	// `rollup` of the scope does not apply here.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of members of the app that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of members of the app that count and are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// clusters are the clusters in which the app has members, with its state in each, worst first, at most 100.
	// +optional
	// +listType=atomic
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is the state of one application in one cluster.
type ClusterStatus struct {
	// name is the name of the cluster.
	Name string `json:"name"`
	// state is the roll-up of the states of the app's members in this cluster, for programs to read.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of members of the app in this cluster that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// lastSeen is the last time at which the cluster was reached, for programs to read. It is present only while the cluster cannot
	// be reached.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// Culprit is a member that counts and is not healthy, or a cluster that cannot be reached.
type Culprit struct {
	// cluster is the name of the cluster of the culprit.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// app is the app of the culprit; absent outside apps, and for a cluster.
	// +optional
	App string `json:"app,omitempty"`
	// group is the API group of the culprit; absent for the core group, and for a cluster.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the kind of the culprit; `Cluster` for a cluster.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace is the namespace of the culprit; absent for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the culprit.
	// +optional
	Name string `json:"name,omitempty"`
	// state is the state of the culprit, for programs to read. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#states.
	// +optional
	State State `json:"state,omitempty"`
	// reason says why in one word, for programs to read. Later versions may add reasons: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/reasons.md.
	// +optional
	Reason string `json:"reason,omitempty"`
	// cause is the root cause of the problem, such as a pod that crashes, for people; programs read `state` and `reason`.
	// +optional
	Cause string `json:"cause,omitempty"`
	// since is when it entered the state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// InventoryStatus is the number of resources by the state of their synchronization with A&AI.
type InventoryStatus struct {
	// synced is the number of resources whose state A&AI has acknowledged.
	// +optional
	Synced int32 `json:"synced"`
	// pending is the number of resources that wait to be written, or for a parent object to appear.
	// +optional
	Pending int32 `json:"pending"`
	// failed is the number of resources that A&AI refused.
	// +optional
	Failed int32 `json:"failed"`
}
