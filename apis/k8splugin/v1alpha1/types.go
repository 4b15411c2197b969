package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelDeploymentID is the label that ties a bundle and the objects it reports
// together. Its value is "<AppContext id>-<app>", which is also the bundle's name.
const LabelDeploymentID = "emco/deployment-id"

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
	// selector selects the objects of the bundle by label, within the bundle's own namespace.
	// Orchestrators write one pair: the label emco/deployment-id and its value.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ResourceBundleStateStatus is what a monitor saw of a bundle's objects.
//
// Decoding never fails: a field of the wrong type is left empty and named in
// Malformed, so that one badly typed bundle cannot break a list of all.
type ResourceBundleStateStatus struct {
	// ready is true when there are resources and every one that counts is ready. Monitors other than ours always write false.
	// +optional
	Ready bool `json:"ready"`
	// resourceCount is the number of objects found for the bundle, also of those that are not listed because status was truncated.
	// Monitors other than ours write 0 or a number that is not to be trusted.
	// +optional
	ResourceCount int32 `json:"resourceCount"`

	// podStatuses holds the bundle's Pods (v1) as whole objects without managed fields, last-applied annotation and literal environment values.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	PodStatuses RawList `json:"podStatuses,omitempty"`
	// serviceStatuses holds the bundle's Services (v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ServiceStatuses RawList `json:"serviceStatuses,omitempty"`
	// configMapStatuses holds the metadata of the bundle's ConfigMaps (v1), never their data.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ConfigMapStatuses RawList `json:"configMapStatuses,omitempty"`
	// deploymentStatuses holds the bundle's Deployments (apps/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DeploymentStatuses RawList `json:"deploymentStatuses,omitempty"`
	// secretStatuses holds the metadata of the bundle's Secrets (v1), never their data. Empty unless Secrets are configured.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	SecretStatuses RawList `json:"secretStatuses,omitempty"`
	// daemonSetStatuses holds the bundle's DaemonSets (apps/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DaemonSetStatuses RawList `json:"daemonSetStatuses,omitempty"`
	// ingressStatuses holds the bundle's Ingresses (networking.k8s.io/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	IngressStatuses RawList `json:"ingressStatuses,omitempty"`
	// jobStatuses holds the bundle's Jobs (batch/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	JobStatuses RawList `json:"jobStatuses,omitempty"`
	// statefulSetStatuses holds the bundle's StatefulSets (apps/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	StatefulSetStatuses RawList `json:"statefulSetStatuses,omitempty"`
	// csrStatuses holds the bundle's CertificateSigningRequests (certificates.k8s.io/v1).
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	CSRStatuses RawList `json:"csrStatuses,omitempty"`
	// resourceStatuses holds the objects of every other kind as EMCO writes them:
	// {group, version, kind, namespace, name, res}, where res is the object's JSON in base64.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ResourceStatuses RawList `json:"resourceStatuses,omitempty"`

	// resources states each object's health in one entry, sorted by group, kind, namespace and name.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []ResourceHealth `json:"resources,omitempty"`
	// summary counts the resources that count, by state. Its presence shows that a HealthScope monitor has filled the bundle.
	// +optional
	// +nullable
	Summary *Summary `json:"summary,omitempty"`
	// truncated is true when lists or resources leave out objects to keep the bundle within its size. Counts stay exact.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// Malformed names the fields that could not be decoded. It is not part of the wire format.
	Malformed []string `json:"-"`
}

// Summary counts the resources of a bundle, or of a scope, that count in its state.
type Summary struct {
	// state is the roll-up of the resources that count.
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
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version the object was read in.
	// +optional
	Version string `json:"version,omitempty"`
	// kind is the object's kind.
	Kind string `json:"kind"`
	// namespace is the object's namespace; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the object's name.
	Name string `json:"name"`
	// uid is the object's uid.
	// +optional
	UID string `json:"uid,omitempty"`
	// state is Ready, Pending, Failed, Terminating, NotPresent or Unknown.
	// +optional
	State string `json:"state"`
	// reason says in one CamelCase word why; it is from a closed list.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says the same for people, in at most 256 characters.
	// +optional
	Message string `json:"message,omitempty"`
	// since is when the monitor first saw the resource in this state.
	// +optional
	// +nullable
	Since *metav1.Time `json:"since,omitempty"`
	// owner is the controller of the object, when there is one.
	// +optional
	// +nullable
	Owner *ResourceOwner `json:"owner,omitempty"`
	// labels are the object's labels that are on the monitor's allow-list.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// desired is the number of replicas that are wanted, for kinds that have replicas.
	// +optional
	Desired *int32 `json:"desired,omitempty"`
	// available is the number of replicas that are ready, for kinds that have replicas.
	// +optional
	Available *int32 `json:"available,omitempty"`
	// progressDeadlineSeconds is how long the workload itself allows for progress, when it says so.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// progress is how far a resource that is Pending has got, for kinds that count it.
	// +optional
	// +nullable
	Progress *ResourceProgress `json:"progress,omitempty"`
	// progressedAt is when the monitor last saw the resource get further while it was Pending.
	// +optional
	// +nullable
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`
	// timed is true while Kubernetes itself watches the rollout and says when it has taken too long.
	// +optional
	Timed bool `json:"timed,omitempty"`
	// progressing is true while a rollout or another change is under way.
	// +optional
	Progressing bool `json:"progressing,omitempty"`
	// serving is true when all that is wanted is ready, also while a change is under way.
	// +optional
	Serving bool `json:"serving,omitempty"`
	// suspended is true when the object is paused or suspended by its owner's wish.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// warning is true when the state is not in doubt, but something about it deserves attention; reason says what.
	// +optional
	Warning bool `json:"warning,omitempty"`
}

// ResourceProgress is how far a workload has got: the most that was seen since it is Pending, within one generation.
type ResourceProgress struct {
	// generation is the generation of the workload.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// updated is the number of replicas that are updated.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// ready is the number of replicas that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// available is the number of replicas that are available.
	// +optional
	Available int32 `json:"available,omitempty"`
	// succeeded is the number of pods that have ended well.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
}

// ResourceOwner names the controller of an object. It is in the object's own namespace.
type ResourceOwner struct {
	// group is the owner's API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind is the owner's kind.
	Kind string `json:"kind"`
	// name is the owner's name.
	Name string `json:"name"`
}
