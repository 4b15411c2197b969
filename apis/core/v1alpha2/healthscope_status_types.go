package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health is the health of a scope in one word, in status.health.
//
// +kubebuilder:validation:Enum=healthy;unhealthy;unknown
type Health string

// The words of status.health.
const (
	// Healthy means that every member that counts is healthy.
	Healthy Health = "healthy"
	// Unhealthy means that a member that counts is not healthy.
	Unhealthy Health = "unhealthy"
	// UnknownHealth means that only members that cannot be judged stand in the way of healthy, or that there are no members.
	UnknownHealth Health = "unknown"
)

// HealthStatus is OAM's word for the health of a workload or of a scope.
//
// +kubebuilder:validation:Enum=HEALTHY;UNHEALTHY;UNKNOWN
type HealthStatus string

// OAM's words.
const (
	// StatusHealthy is OAM's HEALTHY.
	StatusHealthy HealthStatus = "HEALTHY"
	// StatusUnhealthy is OAM's UNHEALTHY.
	StatusUnhealthy HealthStatus = "UNHEALTHY"
	// StatusUnknown is OAM's UNKNOWN.
	StatusUnknown HealthStatus = "UNKNOWN"
)

// State is the state of a member, or of many together: a string in Go, so that a word of another version can be decoded, and one of these
// words for the API server.
//
// +kubebuilder:validation:Enum=Ready;Pending;Failed;Terminating;NotPresent;Unknown
type State = string

// Types of the conditions of a HealthScope.
const (
	// ConditionReady is True when the scope is healthy, False when it is not, and Unknown when only members that cannot be judged are in the
	// way, or when there are none.
	ConditionReady = "Ready"
	// ConditionClustersReachable is True when every cluster of the scope can be seen.
	ConditionClustersReachable = "ClustersReachable"
	// ConditionInventorySynced is True when A&AI holds the state of every resource of the scope. It is absent when no A&AI is configured.
	ConditionInventorySynced = "InventorySynced"
	// ConditionInventoryConflict is True when a resource of the scope goes to A&AI as that of an older scope. It is absent otherwise.
	ConditionInventoryConflict = "InventoryConflict"
	// ConditionStalled is True when the scope is unhealthy because members have failed. It is absent otherwise. Tools that wait as kstatus
	// does give up then.
	ConditionStalled = "Stalled"
	// ConditionHealthChecksInvalid is True when a health check of the configuration cannot be used. It is absent when all can.
	ConditionHealthChecksInvalid = "HealthChecksInvalid"
	// ConditionStatusConflict is True while another controller writes the status too. It is absent when none does.
	ConditionStatusConflict = "StatusConflict"
	// ConditionProbesReady is True while the Services of the scope are probed, and False when something of what the spec says about probes
	// cannot be used. It is absent when the spec asks for no probes.
	ConditionProbesReady = "ProbesReady"
)

// Bounds of the lists in status, which keep a scope far below what etcd stores in one object.
const (
	// MaxHealthConditions is the most entries status.healthConditions has.
	MaxHealthConditions = 200
	// MaxAppClusters is the most clusters an entry of status.apps has.
	MaxAppClusters = 100
	// MaxCulprits is the most entries status.culprits has.
	MaxCulprits = 50
)

// HealthScopeStatus says how healthy a scope is. Its lists are sorted, worst first, and bounded; its counts are exact.
type HealthScopeStatus struct {
	// health is the health of the scope, and the field for programs to read. It is current when `observedGeneration` is the scope's
	// generation. The condition `Ready` has the same with a reason, for tools that wait for conditions. It is `unknown` when the scope would
	// be healthy if its Unknown members were, or when it has no members.
	// +optional
	Health Health `json:"health,omitempty"`
	// scopeHealthCondition is the health in OAM's form, for programs written for OAM; others read `health`. It counts references, not
	// resources, and a number that is zero is absent.
	// +optional
	ScopeHealthCondition ScopeHealthCondition `json:"scopeHealthCondition"`
	// healthConditions are the references with their health, for programs written for OAM; others read `culprits`. There are at most 200.
	// +optional
	// +listType=atomic
	HealthConditions []WorkloadHealthCondition `json:"healthConditions,omitempty"`
	// appHealthConditions are KubeVela's Applications with their health, for programs written for KubeVela; others read `apps` and
	// `culprits`. There is an entry for each Application and environment that the scope refers to, and there are at most 200 components.
	// +optional
	// +listType=atomic
	AppHealthConditions []AppHealthCondition `json:"appHealthConditions,omitempty"`

	// summary counts the members that count, by state, for programs to read. Zeros are written.
	// +optional
	Summary MemberCounts `json:"summary,omitzero"`
	// resourcesReady is `ready/total` of the summary, for people and for the columns of kubectl; programs read `summary`.
	// +optional
	ResourcesReady string `json:"resourcesReady,omitempty"`
	// clustersReachable is the number of reachable clusters / of clusters of the scope, for people and for the columns of kubectl; programs
	// read the condition `ClustersReachable`.
	// +optional
	ClustersReachable string `json:"clustersReachable,omitempty"`
	// apps are the apps with their state, for programs that need more than `health`. An app of the spec is listed even if it has no members
	// that count.
	// +optional
	// +listType=atomic
	Apps []AppStatus `json:"apps,omitempty"`
	// culprits are the members that count and are not healthy, worst first, at most 50, for programs to read. A cluster that cannot be reached
	// is a culprit too, with kind `Cluster` and the number of resources in its cause, before the resources that are Unknown.
	// +optional
	// +listType=atomic
	Culprits []Culprit `json:"culprits,omitempty"`
	// firstCulprit is the first culprit in one line, or the required apps that are missing, for people and for the columns of kubectl; programs
	// read `culprits`.
	// +optional
	FirstCulprit string `json:"firstCulprit,omitempty"`
	// inventory counts the scope's resources by the state of their synchronization with A&AI, for programs to read; the condition
	// `InventorySynced` says why some are not synchronized. It is absent when no inventory is configured.
	// +optional
	Inventory *InventoryStatus `json:"inventory,omitempty"`
	// conditions are Kubernetes conditions, for tools that wait for them and for programs that need a reason: Ready, ClustersReachable,
	// InventorySynced, ProbesReady and, when they are True, Stalled, InventoryConflict, HealthChecksInvalid and StatusConflict. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that the status describes; -1 before the scope has been judged. Programs compare it with
	// `metadata.generation` before they read the rest.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// truncated is true when a list was cut, or a bundle of the scope does not name all its resources, for programs that read the lists.
	// Counts are exact nevertheless.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// MemberCounts counts the members of a scope that count in its health. All numbers are written, also zeros.
type MemberCounts struct {
	// state is the worst state of the members that count; `health` may be better, by `rollup`. It is `Failed` if one is, else `Unknown`, else
	// `Pending`, else `Ready`; without members it is `Unknown`.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// pending is the number of them that are Pending or Terminating, or missing for less than `notPresentGraceSeconds`.
	// +optional
	Pending int32 `json:"pending"`
	// failed is the number of them that are Failed, or missing for longer.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of them that cannot be judged.
	// +optional
	Unknown int32 `json:"unknown"`
}

// ScopeHealthCondition is OAM's summary of a scope: it counts references, not resources. A number that is zero is absent, as in OAM.
type ScopeHealthCondition struct {
	// healthStatus is the health in OAM's words. As in OAM, it is `UNHEALTHY` for everything that is not `HEALTHY`; programs that are not
	// written for OAM read `status.health`, which distinguishes `unknown`.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// total is the number of references; `status.summary` counts resources.
	// +optional
	Total int64 `json:"total,omitempty"`
	// healthyWorkloads is the number of those that are `HEALTHY`.
	// +optional
	HealthyWorkloads int64 `json:"healthyWorkloads,omitempty"`
	// unhealthyWorkloads is the number of those that are `UNHEALTHY`.
	// +optional
	UnhealthyWorkloads int64 `json:"unhealthyWorkloads,omitempty"`
	// unknownWorkloads is the number of those that are `UNKNOWN`.
	// +optional
	UnknownWorkloads int64 `json:"unknownWorkloads,omitempty"`
}

// WorkloadHealthCondition is OAM's health of one reference.
type WorkloadHealthCondition struct {
	// componentName is the OAM component, by the workload's label `app.oam.dev/component`; otherwise the app.
	// +optional
	ComponentName string `json:"componentName,omitempty"`
	// targetWorkload is the reference, with the uid of what was found.
	// +optional
	TargetWorkload WorkloadReference `json:"targetWorkload,omitzero"`
	// healthStatus says how healthy it is in OAM's words, for programs written for OAM; others read the `state` of `culprits`: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#names-in-other-projects.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// diagnosis is `Ready:<ready>/<wanted> `, as in OAM, and what is wrong, or why the object is Unknown or missing, for people. Programs
	// read `state` and `reason` of `culprits`.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`
	// workloadStatus is the first KiB of the status, as JSON, of an object that no rule can judge, for people. It may be cut, and then is not
	// valid JSON.
	// +optional
	WorkloadStatus string `json:"workloadStatus,omitempty"`
	// customStatusMsg is KubeVela's field: `Ready:<ready>/<wanted>`. It is written only in `appHealthConditions`.
	// +optional
	CustomStatusMsg string `json:"customStatusMsg,omitempty"`
	// traits is KubeVela's field. The controller leaves it empty.
	// +optional
	// +listType=atomic
	Traits []TraitHealthCondition `json:"traits,omitempty"`
}

// TraitHealthCondition is KubeVela's health of one trait.
type TraitHealthCondition struct {
	// type is the type of the trait.
	// +optional
	Type string `json:"type,omitempty"`
	// resource is the name of the trait's object.
	// +optional
	Resource string `json:"resource,omitempty"`
	// healthStatus says how healthy it is in OAM's words.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// diagnosis says why.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`
	// customStatusMsg is the message of the trait.
	// +optional
	CustomStatusMsg string `json:"customStatusMsg,omitempty"`
}

// AppHealthCondition is KubeVela's health of one application.
type AppHealthCondition struct {
	// appName is the name of the application.
	// +optional
	AppName string `json:"appName,omitempty"`
	// envName is the name of KubeVela's environment.
	// +optional
	EnvName string `json:"envName,omitempty"`
	// components are the components of the application.
	// +optional
	// +listType=atomic
	Components []WorkloadHealthCondition `json:"components,omitempty"`
}

// AppStatus is the state of one application of a scope.
type AppStatus struct {
	// name is the name of the app; empty for references outside apps.
	// +optional
	Name string `json:"name"`
	// state is the roll-up of the app's members, for programs to read; an app has no other field for its health. `rollup` of the scope does
	// not apply here.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of its members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// clusters are the clusters the app runs in with its state in each, worst first, at most 100.
	// +optional
	// +listType=atomic
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is the state of one application in one cluster.
type ClusterStatus struct {
	// name is the name of the cluster.
	Name string `json:"name"`
	// state is the roll-up of the app's members there, for programs to read.
	// +optional
	State State `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// lastSeen is when the cluster was last seen, for programs to read; it is there only while the cluster cannot be reached.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// Culprit is a member that is not healthy.
type Culprit struct {
	// cluster is the cluster it is in.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// app is the app it belongs to; absent for a cluster.
	// +optional
	App string `json:"app,omitempty"`
	// group is its API group; absent for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is its kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace is its namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`
	// state is its state, for programs to read. See https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#states.
	// +optional
	State State `json:"state,omitempty"`
	// reason says why in one word, for programs to read. Later versions may add reasons: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/reasons.md.
	// +optional
	Reason string `json:"reason,omitempty"`
	// cause is the root of the problem, such as the pod that crashes, for people; programs read
	// `state` and `reason`.
	// +optional
	Cause string `json:"cause,omitempty"`
	// since is when it entered the state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// InventoryStatus counts resources by the state of their synchronization with A&AI.
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
