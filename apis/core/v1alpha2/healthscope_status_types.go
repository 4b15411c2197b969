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

// Types of the conditions of a HealthScope.
const (
	// ConditionReady is True when the scope is healthy, False when it is not, and Unknown when only members that cannot be judged are in the way, or when there are none.
	ConditionReady = "Ready"
	// ConditionClustersReachable is True when every cluster of the scope can be seen.
	ConditionClustersReachable = "ClustersReachable"
	// ConditionInventorySynced is True when A&AI holds the state of every resource of the scope. It is absent when no A&AI is configured.
	ConditionInventorySynced = "InventorySynced"
	// ConditionInventoryConflict is True when a resource of the scope goes to A&AI as that of an older scope. It is absent otherwise.
	ConditionInventoryConflict = "InventoryConflict"
	// ConditionStalled is True when the scope is unhealthy because members have failed. It is absent otherwise. Tools that wait as kstatus does give up then.
	ConditionStalled = "Stalled"
	// ConditionHealthChecksInvalid is True when a health check of the configuration cannot be used. It is absent when all can.
	ConditionHealthChecksInvalid = "HealthChecksInvalid"
	// ConditionStatusContested is True while another controller writes the status too. It is absent when none does.
	ConditionStatusContested = "StatusContested"
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
	// health is the health of the scope in one word: healthy, unhealthy, or unknown when only members that cannot be judged are in the way or when there are none.
	// +optional
	Health Health `json:"health,omitempty"`
	// scopeHealthCondition is the health of the scope as OAM counts it: one for each reference.
	// +optional
	ScopeHealthCondition ScopeHealthCondition `json:"scopeHealthCondition"`
	// healthConditions are the references of the scope with their health, at most 200.
	// +optional
	// +listType=atomic
	HealthConditions []WorkloadHealthCondition `json:"healthConditions,omitempty"`
	// appHealthConditions are KubeVela's health conditions of the applications in spec.appReferences.
	// +optional
	// +listType=atomic
	AppHealthConditions []AppHealthCondition `json:"appHealthConditions,omitempty"`

	// summary counts the members that count, by state.
	// +optional
	Summary Summary `json:"summary,omitzero"`
	// resourcesReady is summary.ready/summary.total, for people.
	// +optional
	ResourcesReady string `json:"resourcesReady,omitempty"`
	// clustersReachable is the number of clusters that can be seen / the number of clusters of the scope, for people.
	// +optional
	ClustersReachable string `json:"clustersReachable,omitempty"`
	// apps are the applications of the scope with their state.
	// +optional
	// +listType=atomic
	Apps []AppStatus `json:"apps,omitempty"`
	// culprits are the members that are not healthy, worst first, at most 50. A cluster that cannot be seen is one too, with kind Cluster, before the resources that are Unknown.
	// +optional
	// +listType=atomic
	Culprits []Culprit `json:"culprits,omitempty"`
	// firstCulprit is the first of culprits in one line, for people.
	// +optional
	FirstCulprit string `json:"firstCulprit,omitempty"`
	// inventory counts the scope's resources by the state of their synchronisation with A&AI. It is absent when no A&AI is configured.
	// +optional
	Inventory *InventoryStatus `json:"inventory,omitempty"`
	// conditions are Ready, ClustersReachable, InventorySynced and, when something is the matter, Stalled, InventoryConflict, HealthChecksInvalid and StatusContested.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of spec that status speaks of, and -1 before the scope has been judged.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// truncated is true when lists were cut to keep status within its bounds. Counts stay exact.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// Summary counts the members of a scope that count in its health. All numbers are written, also zeros.
type Summary struct {
	// state is the roll-up of the members: Failed, Unknown, Pending or Ready, in this order of precedence, and Unknown without members.
	// +optional
	State string `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// pending is the number of them that are Pending or Terminating, or missing for less than the grace period.
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
	// healthStatus is health in OAM's word: HEALTHY, UNHEALTHY or UNKNOWN.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// total is the number of references.
	// +optional
	Total int64 `json:"total,omitempty"`
	// healthyWorkloads is the number of references that are HEALTHY.
	// +optional
	HealthyWorkloads int64 `json:"healthyWorkloads,omitempty"`
	// unhealthyWorkloads is the number of references that are UNHEALTHY.
	// +optional
	UnhealthyWorkloads int64 `json:"unhealthyWorkloads,omitempty"`
	// unknownWorkloads is the number of references that are UNKNOWN.
	// +optional
	UnknownWorkloads int64 `json:"unknownWorkloads,omitempty"`
}

// WorkloadHealthCondition is OAM's health of one reference.
type WorkloadHealthCondition struct {
	// componentName is the OAM component the workload was made from, by its label app.oam.dev/component, or the app the reference belongs to.
	// +optional
	ComponentName string `json:"componentName,omitempty"`
	// targetWorkload is the reference, with the uid of the object that was found.
	// +optional
	TargetWorkload WorkloadReference `json:"targetWorkload,omitzero"`
	// healthStatus is HEALTHY, UNHEALTHY or UNKNOWN.
	// +optional
	HealthStatus HealthStatus `json:"healthStatus,omitempty"`
	// diagnosis says why, beginning with Ready:<ready>/<desired> where there are numbers, as in OAM.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`
	// workloadStatus says more about a workload that is UNKNOWN.
	// +optional
	WorkloadStatus string `json:"workloadStatus,omitempty"`
	// customStatusMsg is KubeVela's message of the component.
	// +optional
	CustomStatusMsg string `json:"customStatusMsg,omitempty"`
	// traits are KubeVela's health conditions of the component's traits.
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
	// healthStatus is HEALTHY, UNHEALTHY or UNKNOWN.
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
	// components are the components of the application with their health.
	// +optional
	// +listType=atomic
	Components []WorkloadHealthCondition `json:"components,omitempty"`
}

// AppStatus is the state of one application of a scope.
type AppStatus struct {
	// name is the name of the application; empty for references outside apps.
	// +optional
	Name string `json:"name"`
	// state is the roll-up of the application's members.
	// +optional
	State string `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// clusters is the same for each cluster the application runs in, worst first, at most 100.
	// +optional
	// +listType=atomic
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is the state of one application in one cluster.
type ClusterStatus struct {
	// name is the name of the cluster.
	Name string `json:"name"`
	// state is the roll-up of the application's members in the cluster.
	// +optional
	State string `json:"state,omitempty"`
	// total is the number of members that count.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// lastSeen is when the cluster was last seen. It is present while the cluster cannot be reached.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// Culprit is a member that is not healthy.
type Culprit struct {
	// cluster is the cluster the member is in.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// app is the application it belongs to.
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
	// state is its state.
	// +optional
	State string `json:"state,omitempty"`
	// reason says in one word why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// cause names what is behind it, such as the pod that crashes.
	// +optional
	Cause string `json:"cause,omitempty"`
	// since is when it entered the state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// InventoryStatus counts resources by the state of their synchronisation with A&AI.
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
