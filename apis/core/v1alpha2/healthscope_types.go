package v1alpha2

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Labels with which a bundle, or a Service to be probed, belongs to a scope in its namespace without a reference in the scope,
// and the annotation of Services.
const (
	// LabelScopeName has a scope's name as its value. A bundle can belong to one scope in this way.
	LabelScopeName = "healthscope.core.oam.dev/name"
	// LabelScopePrefix, followed by a scope's name, is a label key whose value is "true". A bundle can belong to many scopes in this way.
	LabelScopePrefix = "healthscope.core.oam.dev/"
	// AnnotationProbe, with the value "true", requests probes of a Service that is in a bundle of a scope with probes. Services that
	// carry a label of the scope, and Services that the scope refers to, are probed without it.
	AnnotationProbe = "healthscope.core.oam.dev/probe"
)

// Labels by which OAM's runtimes name the application and the component that an object belongs to.
const (
	LabelApplication = "app.oam.dev/name"
	LabelComponent   = "app.oam.dev/component"
)

// ScopesOf returns the sorted names of the scopes to which an object belongs by its labels.
func ScopesOf(labels map[string]string) (scopes []string) {
	for key, value := range labels {
		scope, prefixed := strings.CutPrefix(key, LabelScopePrefix)
		switch {
		case key == LabelScopeName:
			scopes = append(scopes, value)
		case prefixed && value == "true":
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// HealthScope shows whether an application is healthy in every cluster in which it runs, and if not, what is wrong and since when.
// For the meaning of its conditions, reasons and events, and what to do, see
// https://github.com/healthscope/healthscope/blob/main/config/docs/troubleshooting.md.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=hs,categories={oam,crossplane}
// +kubebuilder:printcolumn:name="HEALTH",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.resourcesReady`
// +kubebuilder:printcolumn:name="PENDING",type=integer,JSONPath=`.status.summary.pending`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.summary.failed`
// +kubebuilder:printcolumn:name="CLUSTERS",type=string,JSONPath=`.status.clustersReachable`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CULPRIT",type=string,priority=1,JSONPath=`.status.firstCulprit`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a HealthScope's name has at most 63 characters, because bundles carry it in a label"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'name'",message="the name 'name' is reserved: healthscope.core.oam.dev/name is the label that holds a scope's name"
type HealthScope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes what belongs to the scope.
	// +optional
	// +kubebuilder:default={}
	Spec HealthScopeSpec `json:"spec,omitempty"`
	// status is the health of the scope. The HealthScope controller writes it, and only when it changes. Before the first time,
	// `observedGeneration` is -1, so that tools that wait do not take the status of a scope that has not been judged for a current
	// one.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status HealthScopeStatus `json:"status,omitempty"`
}

// HealthScopeList is a list of HealthScopes.
//
// +kubebuilder:object:root=true
type HealthScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the scopes.
	Items []HealthScope `json:"items"`
}

// HealthScopeSpec describes what belongs to a scope. All references are to objects in the scope's namespace, in every cluster.
type HealthScopeSpec struct {
	// probe-method is the method of the HTTP probes of the scope's Services: `GET`, `HEAD`, or `httpGet`, which means `GET`. Without
	// this field, Services are not probed. `kube-get`, with the endpoint `.status` or without an endpoint, requests no probes: the
	// controller watches the status anyway. Other values are invalid: the condition `ProbesReady` reports them.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ProbeMethod string `json:"probe-method,omitempty"`
	// probe-endpoint is the path of the probes, such as `/health`. It has at most 256 letters, digits and characters of `-._~/`,
	// begins with `/`, and has no segments `.` and `..`. Other values are invalid: the condition `ProbesReady` reports them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ProbeEndpoint string `json:"probe-endpoint,omitempty"`
	// probe-port is the port of the Services to probe, by name or number. Without it: the only port of a Service, or else the port
	// with the name `http`.
	// +optional
	// +kubebuilder:validation:XIntOrString
	ProbePort *intstr.IntOrString `json:"probe-port,omitempty"`
	// probe-scheme is the scheme of the probes: `HTTP` or `HTTPS`. Without it: `HTTP`. Probes go through the API server of the
	// cluster, which does not verify certificates.
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	ProbeScheme string `json:"probe-scheme,omitempty"`
	// probe-timeout is how many seconds a probe may take: 1 to 60. 0 and less mean the default.
	// +optional
	// +kubebuilder:default=10
	ProbeTimeout *int32 `json:"probe-timeout,omitempty"`
	// probe-interval is the number of seconds between two probes of a Service: 1 to 86400. 0 and less mean the default.
	// +optional
	// +kubebuilder:default=30
	ProbeInterval *int32 `json:"probe-interval,omitempty"`
	// failure-rate-threshold is the share of failures among the last 10 probes, from 0 to 1, above which a Service is Failed; a
	// number above 1 is a percentage. Without it, a Service is Failed after three failures in a row. If all 10 probes have failed,
	// the Service is Failed with any threshold.
	// +optional
	FailureRateThreshold *float64 `json:"failure-rate-threshold,omitempty"`
	// healthy-rate-threshold is the share of successes among the last 10 probes, from 0 to 1, above which a Service that is not
	// Ready becomes Ready; a number above 1 is a percentage. Without it, one success is enough. If all of these probes have
	// succeeded, the Service is Ready with any threshold.
	// +optional
	HealthyRateThreshold *float64 `json:"healthy-rate-threshold,omitempty"`
	// health-threshold-percentage is the share of members that must be healthy, in percent: OAM's name for
	// `rollup.healthyPercentage`, which takes precedence. The percentage applies to all members that count, with or without probes.
	// +optional
	HealthThresholdPercentage *float64 `json:"health-threshold-percentage,omitempty"`
	// required-healthy-components are names of OAM components that must exist and in which all members must be healthy, whatever the
	// percentage, as in `rollup.required`. Members belong to a component by their label `app.oam.dev/component`, or else by their app.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	RequiredHealthyComponents []string `json:"required-healthy-components,omitempty"`

	// workloadRefs are references to workloads and bundles outside apps, as in OAM. Their members belong to the app with the empty
	// name. OAM's runtime adds and removes entries here.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=5000
	// +listType=atomic
	WorkloadReferences []WorkloadReference `json:"workloadRefs"`

	// appReferences are KubeVela's references to applications and their components. As in KubeVela, they are used only when `workloadRefs` is
	// empty, and a component counts by its workload: see https://github.com/healthscope/healthscope/blob/main/config/docs/kubevela.md.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	AppReferences []AppReference `json:"appReferences,omitempty"`

	// manageHealthCheck is accepted for KubeVela and without effect. KubeVela's policy `health` sets it, and sets it again if it is
	// missing.
	// +optional
	ManageHealthCheck bool `json:"manageHealthCheck,omitempty"`

	// apps are the applications of the scope, each with its references. The status has an entry for each of them.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	// +listType=map
	// +listMapKey=name
	Apps []ScopeApp `json:"apps,omitempty"`

	// clusters are the clusters from which the scope takes bundles, and workloads by `workloadSelector`: those that are named and
	// those that the selector matches. Without it: all. This also applies to bundles that belong to the scope by their labels.
	// References to other objects are followed in any cluster. An object that is expected in a cluster that is not selected, or a
	// bundle that is referred to in such a cluster, is Unknown with the reason `ClusterExcluded`.
	// +optional
	Clusters *ClusterSelection `json:"clusters,omitempty"`

	// expectedClusters are the clusters in which every app must have a bundle, and in which every bundle that `spec.workloadRefs`
	// names without a `cluster` must exist. Other objects that a reference names are not expected there: without a `cluster`, the
	// reference means the object in the scope's own cluster. A missing bundle is NotPresent with the reason `NotFound`, and counts
	// as Pending at first, then as Failed. What is expected in a cluster that the controller does not know is Unknown with the
	// reason `UnknownCluster`.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	ExpectedClusters []string `json:"expectedClusters,omitempty"`

	// rollup sets which members must be healthy for the scope to be healthy. Without it: all members that count.
	// +optional
	Rollup *Rollup `json:"rollup,omitempty"`
}

// WorkloadReference refers to one object in the scope's namespace: a ResourceBundleState, a workload of any kind, or an
// Application of KubeVela, which stands for the workloads that it has applied. All fields are optional in the schema, as in
// KubeVela. A reference without apiVersion, kind or name is Unknown with the reason `InvalidReference`, and its message names the
// missing field.
//
// +structType=atomic
type WorkloadReference struct {
	// apiVersion is the API group and version of the object, such as `apps/v1`.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the kind of the object, such as `Deployment` or `ResourceBundleState`.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is the name of the object. A reference without apiVersion, kind or name is Unknown with the reason `InvalidReference`.
	// +optional
	Name string `json:"name,omitempty"`
	// uid is the uid of the object. If it is set, an object with this name and another uid counts as missing, with the reason
	// `NotFound`.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// namespace may repeat the scope's namespace. A reference to another namespace is not followed: it is Unknown with the reason
	// `CrossNamespace`.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// cluster is the cluster the object is in, as `<provider>+<cluster>`. Without it, a bundle is looked for in every cluster, and a
	// workload in the cluster of the scope. A reference to a cluster that the controller does not know is Unknown with the reason
	// `UnknownCluster`.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// resourceVersion is accepted for KubeVela and without effect.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// fieldPath is accepted for KubeVela and without effect.
	// +optional
	FieldPath string `json:"fieldPath,omitempty"`
}

// AppReference is KubeVela's reference to the components of an Application.
type AppReference struct {
	// appName is the name of KubeVela's Application. Without `compReferences`, its workloads are those that its status lists as
	// applied.
	// +optional
	AppName string `json:"appName,omitempty"`
	// compReferences are the components of the Application that count. Without it: all.
	// +optional
	// +listType=atomic
	CompReferences []CompReference `json:"compReferences,omitempty"`
}

// CompReference is KubeVela's reference to the objects of a component.
type CompReference struct {
	// compName is the name of the component.
	// +optional
	CompName string `json:"compName,omitempty"`
	// workload is the workload of the component, which counts. Without it: the workload that the Application names.
	// +optional
	Workload WorkloadReference `json:"workload,omitempty"`
	// traits are the objects of the component's traits, which do not count, as in KubeVela.
	// +optional
	// +listType=atomic
	Traits []WorkloadReference `json:"traits,omitempty"`
}

// ScopeApp is one application of a scope.
type ScopeApp struct {
	// name is the name of the application within the scope.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// workloadRefs are references to the workloads and bundles of the application.
	// +optional
	// +kubebuilder:validation:MaxItems=5000
	// +listType=atomic
	WorkloadReferences []WorkloadReference `json:"workloadRefs,omitempty"`
	// selector is a label selector for bundles: bundles with these labels belong to the app, besides those that the app refers to.
	// Every user who may write bundles in the scope's namespace of a cluster can set these labels; `clusters` limits the clusters.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// workloadSelector selects workloads by their labels, in the scope's namespace of each cluster in `clusters`. It needs no bundle
	// and no monitor. A workload whose controller is selected too, such as a Job of a CronJob, does not count. In a cluster where
	// the controller may not read a kind, the workloads of that kind are Unknown with the reason `Forbidden`. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#workloads-by-label.
	// +optional
	WorkloadSelector *WorkloadSelector `json:"workloadSelector,omitempty"`
	// clusters are the clusters, among those that `spec.clusters` selects, from which the app takes bundles and workloads. Without
	// it: all of these.
	// +optional
	Clusters *ClusterSelection `json:"clusters,omitempty"`
	// expectedResources are resources that the app must have, in the scope's namespace or cluster-scoped. A resource that is not
	// found through the app's bundles, references and selectors is NotPresent with the reason `NotFound`, and counts as Pending at
	// first, then as Failed. Without this field, and without AppContexts, a deleted resource no longer counts, and the scope stays
	// healthy without it. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#what-appcontexts-require.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	ExpectedResources []ExpectedResource `json:"expectedResources,omitempty"`
	// inventory names the objects in A&AI to which the app's resources are related.
	// +optional
	Inventory *InventoryLinks `json:"inventory,omitempty"`
}

// WorkloadSelector selects workloads by their labels. Without `matchLabels` and `matchExpressions`, it selects all workloads of
// its kinds.
type WorkloadSelector struct {
	metav1.LabelSelector `json:",inline"`

	// kinds are the kinds of workloads. Without it: Deployments, StatefulSets, DaemonSets, Jobs and CronJobs.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Kinds []WorkloadKind `json:"kinds,omitempty"`
}

// WorkloadKind is a kind of workloads.
type WorkloadKind struct {
	// apiVersion is the group and version of the kind, such as `apps/v1`.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// kind is the kind, such as `Deployment`. It must be namespaced.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ClusterSelection selects clusters: those that are named, and those whose labels the selector matches.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) && size(self.names) > 0 || has(self.selector)",message="one of names and selector is needed: without them, no cluster is selected"
type ClusterSelection struct {
	// names are names of clusters, such as `<provider>+<cluster>`. The name of the controller's own cluster is `clusterName` in its
	// configuration file, `local` by default. A cluster that the controller does not know is Unknown with the reason `UnknownCluster`.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Names []string `json:"names,omitempty"`
	// selector is a label selector over the labels of the clusters' Secrets in the hub. The controller's own cluster has no labels: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/clusters.md#labels-of-clusters.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ExpectedResource names a resource that an application must have.
//
// +structType=atomic
type ExpectedResource struct {
	// group is the API group of the resource; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind is the kind of the resource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of the resource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// cluster is the name of the cluster in which the resource must exist. Without it: each of `expectedClusters`; if there are
	// none, each cluster in which the app has a bundle; or else the cluster of the scope.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
}

// InventoryLinks names the objects in A&AI to which the resources of an application are related.
//
// +kubebuilder:validation:XValidation:rule="!has(self.vfModuleId) || has(self.genericVnfId)",message="vfModuleId needs genericVnfId: a vf-module is found within its generic-vnf"
type InventoryLinks struct {
	// genericVnfId is the `vnf-id` of the `generic-vnf` that is hosted on the resources. It must be allowed for the scope's namespace: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/configuration.md#inventory.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GenericVNFID string `json:"genericVnfId,omitempty"`
	// vfModuleId is the `vf-module-id`, within that VNF, of the `vf-module` that uses the resources.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VFModuleID string `json:"vfModuleId,omitempty"`
}

// Rollup sets how the health of a scope follows from the states of its members.
type Rollup struct {
	// healthyPercentage is the share of members that must be healthy, in percent. Without it: 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HealthyPercentage *int32 `json:"healthyPercentage,omitempty"`
	// required are apps that must exist and in which all members must be healthy, whatever the percentage.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Required []string `json:"required,omitempty"`
	// ignore matches members that are listed but do not count. An entry matches a member if all fields that the entry sets are
	// equal. It does not match resources that a truncated bundle does not list.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Ignore []MemberMatch `json:"ignore,omitempty"`
}

// MemberMatch matches members of a scope. An empty field matches every value. The value of a field that is set must be equal.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) && size(self.group) > 0 || has(self.kind) && size(self.kind) > 0 || has(self.name) && size(self.name) > 0 || has(self.app) && size(self.app) > 0",message="one of group, kind, name and app is needed: without them, everything is ignored"
type MemberMatch struct {
	// group is the API group of the member.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind is the kind of the member.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name is the name of the member.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// app is the name of the member's app in the scope.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	App string `json:"app,omitempty"`
}
