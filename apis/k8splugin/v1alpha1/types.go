package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelDeploymentID is the label that connects a bundle with the objects that it reports. Its value is "<AppContext id>-<app>",
// which is also the name of the bundle.
const LabelDeploymentID = "emco/deployment-id"

// LabelPreInstallHook marks, with the value "true", a bundle that EMCO creates while pre-install hooks run.
const LabelPreInstallHook = "emco/preinstallHook"

// ResourceBundleState reports the status of the objects of one application in one cluster.
// The objects are those in its namespace that match spec.selector.
// For the meaning of its reasons and events, and what to do, see
// https://github.com/healthscope/healthscope/blob/main/config/docs/troubleshooting.md.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rbs,categories=emco
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="RESOURCES",type=integer,JSONPath=`.status.resourceCount`
// +kubebuilder:printcolumn:name="PENDING",type=integer,JSONPath=`.status.summary.pending`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.summary.failed`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBundleState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects of the bundle.
	// +optional
	Spec ResourceBundleStateSpec `json:"spec,omitempty"`
	// status is the status of the objects of the bundle. The monitor of the cluster writes it.
	// +optional
	Status ResourceBundleStateStatus `json:"status,omitempty"`
}

// ResourceBundleStateList is a list of ResourceBundleStates.
//
// +kubebuilder:object:root=true
type ResourceBundleStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the bundles.
	Items []ResourceBundleState `json:"items"`
}

// ResourceBundleStateSpec selects the objects of a bundle.
type ResourceBundleStateSpec struct {
	// selector is a label selector for the objects of the bundle, in its own namespace. A bundle in a trusted namespace also has
	// objects of other namespaces: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#trusted-namespaces. Orchestrators write one pair:
	// the label `emco/deployment-id` and its value.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ResourceBundleStateStatus is the status of a bundle's objects, as a monitor observed it.
//
// A field of the wrong type does not make decoding fail: it is left empty, and its name is in Malformed, so that one bundle
// cannot make the decoding of a list of bundles fail.
type ResourceBundleStateStatus struct {
	// ready is true if the bundle has resources, all that count are Ready, and all can be read. Other monitors always write false;
	// programs read `summary`.
	// +optional
	Ready bool `json:"ready"`
	// resourceCount is the number of objects of the bundle, including those that are not listed. Other monitors write 0 or a wrong
	// number; programs read `summary`, which has the number of resources that count in the bundle's state.
	// +optional
	ResourceCount int32 `json:"resourceCount"`

	// podStatuses are Pods (`v1`), without managed fields, the last-applied annotation and literal values of environment variables.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	PodStatuses RawList `json:"podStatuses,omitempty"`
	// serviceStatuses are Services (`v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ServiceStatuses RawList `json:"serviceStatuses,omitempty"`
	// configMapStatuses are ConfigMaps (`v1`): metadata only.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ConfigMapStatuses RawList `json:"configMapStatuses,omitempty"`
	// deploymentStatuses are Deployments (`apps/v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DeploymentStatuses RawList `json:"deploymentStatuses,omitempty"`
	// secretStatuses are Secrets (`v1`): metadata only, and only where the monitor is configured to report them. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#kinds.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	SecretStatuses RawList `json:"secretStatuses,omitempty"`
	// daemonSetStatuses are DaemonSets (`apps/v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DaemonSetStatuses RawList `json:"daemonSetStatuses,omitempty"`
	// ingressStatuses are Ingresses (`networking.k8s.io/v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	IngressStatuses RawList `json:"ingressStatuses,omitempty"`
	// jobStatuses are Jobs (`batch/v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	JobStatuses RawList `json:"jobStatuses,omitempty"`
	// statefulSetStatuses are StatefulSets (`apps/v1`).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	StatefulSetStatuses RawList `json:"statefulSetStatuses,omitempty"`
	// csrStatuses are CertificateSigningRequests (`certificates.k8s.io/v1`), in bundles of trusted namespaces. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#trusted-namespaces.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	CSRStatuses RawList `json:"csrStatuses,omitempty"`
	// resourceStatuses are objects of all other kinds, as EMCO writes them: `group`, `version`, `kind`, `namespace`, `name`, and in
	// `res` the JSON of the object in base64.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ResourceStatuses RawList `json:"resourceStatuses,omitempty"`

	// resources are the objects of the bundle with their health, for programs to read, sorted by group, kind, namespace and name.
	// The lists of whole objects are for programs written for EMCO or ONAP.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []ResourceHealth `json:"resources,omitempty"`
	// summary is the number of resources that count, by state, before time limits are applied, for programs to read. It is absent
	// until a HealthScope monitor has filled the bundle.
	// +optional
	// +nullable
	Summary *ResourceCounts `json:"summary,omitempty"`
	// truncated is true if the lists or `resources` leave out objects, because of their size or because they cannot be read. It is
	// for programs that read them. Counts are exact nevertheless.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// Malformed holds the names of the fields that could not be decoded. It is not part of the JSON.
	Malformed []string `json:"-"`
}

// ResourceCounts is the number of resources that count in the state of a bundle, by state.
type ResourceCounts struct {
	// state is the state of the bundle, for programs to read: `Failed`, `Unknown`, `Pending` or `Ready`. It is the roll-up of the states
	// of the resources that count.
	// +optional
	State string `json:"state"`
	// total is the number of resources that count: those that are not owned by another resource of the bundle.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of resources that count and are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// pending is the number of resources that count and are Pending or Terminating.
	// +optional
	Pending int32 `json:"pending"`
	// failed is the number of resources that count and are Failed.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of resources that count and cannot be judged.
	// +optional
	Unknown int32 `json:"unknown"`
}

// ResourceHealth is the health of one object by the rules, before owners and time limits are applied.
type ResourceHealth struct {
	// group is the API group; absent for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version in which the object was read.
	// +optional
	Version string `json:"version,omitempty"`
	// kind is the object's kind.
	Kind string `json:"kind"`
	// namespace is the object's namespace; absent for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the object's name.
	Name string `json:"name"`
	// uid is the object's uid.
	// +optional
	UID string `json:"uid,omitempty"`
	// state is `Ready`, `Pending`, `Failed`, `Terminating`, `NotPresent` or `Unknown`, for programs to read. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#states.
	// +optional
	State string `json:"state"`
	// reason is the reason for the state, in one CamelCase word, for programs to read. Later versions may add reasons: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/reasons.md.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes the reason for people, in at most 256 bytes; programs read `state` and `reason`.
	// +optional
	Message string `json:"message,omitempty"`
	// since is the time at which the monitor first saw the object in this state. It does not change when the monitor restarts. A
	// time in the future, from a wrong clock, is replaced by the current time.
	// +optional
	// +nullable
	Since *metav1.Time `json:"since,omitempty"`
	// owner is the controller of the object, in the same namespace. It is absent if there is none.
	// +optional
	// +nullable
	Owner *ResourceOwner `json:"owner,omitempty"`
	// labels are those labels of the object whose keys are in `monitor.allowedLabels` of the configuration file.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// desired is the desired number of replicas, or the number of containers of a pod. It is absent for objects without either.
	// +optional
	Desired *int32 `json:"desired,omitempty"`
	// available is the number of replicas, or of containers of a pod, that are ready. It is absent for objects without either.
	// +optional
	Available *int32 `json:"available,omitempty"`
	// progressDeadlineSeconds is the workload's own deadline for progress, in seconds. It is absent if the workload has none.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// progress is the progress of a Pending workload, for kinds that count it. The controller reads it to apply time limits; other
	// programs read `desired` and `available`.
	// +optional
	// +nullable
	Progress *ResourceProgress `json:"progress,omitempty"`
	// progressedAt is the last time at which the monitor saw the object progress while it was Pending.
	// +optional
	// +nullable
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`
	// timed is true while Kubernetes itself times the rollout and reports when it takes too long.
	// +optional
	Timed bool `json:"timed,omitempty"`
	// serving is true if all desired replicas are ready, also during a rollout.
	// +optional
	Serving bool `json:"serving,omitempty"`
	// suspended is true if the object's spec suspends or pauses it.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// warning is true if something needs attention although the object is in this state. `reason` names it.
	// +optional
	Warning bool `json:"warning,omitempty"`
}

// ResourceProgress is the progress of a workload: the largest numbers since it became Pending, within one generation.
type ResourceProgress struct {
	// generation is the generation of the workload to which the numbers belong.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// updated is the largest number of updated replicas since the workload became Pending.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// ready is the largest number of ready replicas since the workload became Pending.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// available is the largest number of available replicas since the workload became Pending.
	// +optional
	Available int32 `json:"available,omitempty"`
	// succeeded is the largest number of succeeded pods since the workload became Pending.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
}

// ResourceOwner names the controller of an object. The controller is in the namespace of the object.
type ResourceOwner struct {
	// group is the owner's API group; absent for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the owner's kind.
	Kind string `json:"kind"`
	// name is the owner's name.
	Name string `json:"name"`
}
