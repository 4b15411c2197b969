package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelDeploymentID is the label that ties a bundle and the objects it reports
// together. Its value is "<AppContext id>-<app>", which is also the bundle's name.
const LabelDeploymentID = "emco/deployment-id"

// LabelPreInstallHook marks, with the value "true", a bundle of EMCO's that is made while the hooks before an installation run.
const LabelPreInstallHook = "emco/preinstallHook"

// ResourceBundleState reports the status of the objects of one application in one cluster.
// The objects are those in its namespace that carry the label in spec.selector.
// What its reasons and events mean, and what to do: https://github.com/healthscope/healthscope/blob/main/config/docs/troubleshooting.md
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

	// spec says which objects belong to the bundle.
	// +optional
	Spec ResourceBundleStateSpec `json:"spec,omitempty"`
	// status is written by the monitor of the cluster the bundle is in.
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

// ResourceBundleStateSpec says which objects belong to a bundle.
type ResourceBundleStateSpec struct {
	// selector is a label selector for the objects of the bundle, within its own namespace. A bundle in a trusted namespace also gets those of
	// others: see https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#trusted-namespaces. Orchestrators write one
	// pair: the label `emco/deployment-id` and its value.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ResourceBundleStateStatus is what a monitor saw of a bundle's objects.
//
// Decoding never fails: a field of the wrong type is left empty and named in
// Malformed, so that one badly typed bundle cannot break a list of all.
type ResourceBundleStateStatus struct {
	// ready is true when the bundle has resources, all that count are Ready, and all can be read. Other monitors always write false; programs
	// read `summary`.
	// +optional
	Ready bool `json:"ready"`
	// resourceCount is the number of objects found, also of those that are not listed. Other monitors write 0 or a wrong number; programs read
	// `summary`, which counts the resources that count in the bundle's state.
	// +optional
	ResourceCount int32 `json:"resourceCount"`

	// podStatuses are Pods (`v1`), as far as they are copied: without managed fields, last-applied annotation and literal environment values.
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
	// resourceStatuses are all other kinds, as EMCO writes them: `group`, `version`, `kind`, `namespace`, `name`, and the object's JSON in
	// base64 in `res`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ResourceStatuses RawList `json:"resourceStatuses,omitempty"`

	// resources states the health of each object in one entry, for programs to read, sorted by group, kind, namespace and name. The lists of
	// whole objects are for programs written for EMCO or ONAP.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []ResourceHealth `json:"resources,omitempty"`
	// summary counts the resources that count, by state, without time limits, for programs to read. It is there once a HealthScope monitor has
	// filled the bundle.
	// +optional
	// +nullable
	Summary *ResourceCounts `json:"summary,omitempty"`
	// truncated is true when lists or resources leave out objects, because of their size or because they cannot be read, for programs that read
	// these. Counts stay exact.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// Malformed names the fields that could not be decoded. It is not part of the wire format.
	Malformed []string `json:"-"`
}

// ResourceCounts counts the resources of a bundle that count in its state.
type ResourceCounts struct {
	// state is the roll-up of the resources that count, for programs to read: the state of the bundle.
	// +optional
	State string `json:"state"`
	// total is the number of resources that count: those that are not owned by another resource of the bundle.
	// +optional
	Total int32 `json:"total"`
	// ready is the number of them that are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// pending is the number of them that are Pending or Terminating.
	// +optional
	Pending int32 `json:"pending"`
	// failed is the number of them that are Failed.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of them that cannot be judged.
	// +optional
	Unknown int32 `json:"unknown"`
}

// ResourceHealth is the health of one object as the rules see it, before owners and time are taken into account.
type ResourceHealth struct {
	// group is the API group; absent for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version the object was read in.
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
	// reason says why in one CamelCase word, for programs to read. Later versions may add reasons: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/reasons.md.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says the same for people, in at most 256 bytes; programs read `state` and `reason`.
	// +optional
	Message string `json:"message,omitempty"`
	// since is when the monitor first saw the object in this state. It survives a restart; a time in the future, of a clock that was wrong, is
	// replaced by the present.
	// +optional
	// +nullable
	Since *metav1.Time `json:"since,omitempty"`
	// owner is the controller of the object, in the same namespace, when there is one.
	// +optional
	// +nullable
	Owner *ResourceOwner `json:"owner,omitempty"`
	// labels are the object's labels that `monitor.allowedLabels` of the configuration file lets through.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// desired is the number of replicas that are wanted, or of containers of a pod.
	// +optional
	Desired *int32 `json:"desired,omitempty"`
	// available is the number of them that are ready.
	// +optional
	Available *int32 `json:"available,omitempty"`
	// progressDeadlineSeconds is the workload's own limit for progress, if it has one.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// progress is the progress of a Pending workload, for kinds that have counts. The controller reads it to judge time limits; others
	// read `desired` and `available`.
	// +optional
	// +nullable
	Progress *ResourceProgress `json:"progress,omitempty"`
	// progressedAt is when the monitor last saw the object get further while it was Pending.
	// +optional
	// +nullable
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`
	// timed is true while Kubernetes itself watches the rollout and says when it has taken too long.
	// +optional
	Timed bool `json:"timed,omitempty"`
	// serving is true when all that is wanted is ready, also while a change is under way.
	// +optional
	Serving bool `json:"serving,omitempty"`
	// suspended is true when the object's spec pauses it.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// warning is true when something needs attention although the object is in this state; the reason says what.
	// +optional
	Warning bool `json:"warning,omitempty"`
}

// ResourceProgress is how far a workload has got: the most that was seen since it is Pending, within one generation.
type ResourceProgress struct {
	// generation is the generation of the workload. The numbers are those of this one.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// updated is the largest number of updated replicas since the workload became Pending.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// ready is the largest number of ready replicas.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// available is the largest number of available replicas.
	// +optional
	Available int32 `json:"available,omitempty"`
	// succeeded is the largest number of pods that have succeeded.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
}

// ResourceOwner names the controller of an object. It is in the object's own namespace.
type ResourceOwner struct {
	// group is the owner's API group; absent for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the owner's kind.
	Kind string `json:"kind"`
	// name is the owner's name.
	Name string `json:"name"`
}
