package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity of the configuration file.
const (
	// APIVersion is the apiVersion of a configuration file.
	APIVersion = "config.healthscope.io/v1alpha1"
	// Kind is the kind of a configuration file.
	Kind = "Configuration"
)

// Configuration is the configuration file. Every field but apiVersion and kind has a default, and so has the file itself.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// clusterName is the name of the cluster the program runs in, as it appears in status, metrics and A&AI. The default is local.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// policy is the installation's policy in matters of time.
	// +optional
	Policy Policy `json:"policy,omitempty"`
	// monitor configures the command healthscope monitor.
	// +optional
	Monitor Monitor `json:"monitor,omitempty"`
	// inventory configures the synchronisation with A&AI. Without it there is none.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// api configures the status REST server.
	// +optional
	API API `json:"api,omitempty"`
}

// Policy is the installation's policy in matters of time. All values are whole seconds.
type Policy struct {
	// pendingTimeoutSeconds is how long a resource may be Pending before it is Failed, unless the workload has a progressDeadlineSeconds of its own. 0 means for ever. The default is 600.
	// +optional
	PendingTimeoutSeconds *int32 `json:"pendingTimeoutSeconds,omitempty"`
	// notPresentGraceSeconds is how long an expected resource may be missing before it is Failed. The default is 60.
	// +optional
	NotPresentGraceSeconds *int32 `json:"notPresentGraceSeconds,omitempty"`
	// failureGraceSeconds delays Failed: for so long a failure counts as Pending. The default is 0.
	// +optional
	FailureGraceSeconds *int32 `json:"failureGraceSeconds,omitempty"`
}

// Monitor configures the monitor of a workload cluster.
type Monitor struct {
	// labelKeys are the label keys that tie objects to bundles. The default is emco/deployment-id.
	// +optional
	LabelKeys []string `json:"labelKeys,omitempty"`
	// namespaces are the namespaces that are watched. The default is all.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// allowedLabels are the label keys of objects that are copied to the entries of status.resources. The default is app.oam.dev/component, app.kubernetes.io/name and app.kubernetes.io/component.
	// +optional
	AllowedLabels []string `json:"allowedLabels,omitempty"`
}

// API configures the status REST server.
type API struct {
	// bindAddress is host:port to listen on, or 0 for no server. It must be a loopback address, because callers are not asked who they are. The default is 127.0.0.1:8082.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// defaultNamespace is the namespace of scopes that are asked for without one. The default is default.
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
}

// InventorySelect says which resources go to A&AI.
type InventorySelect string

// The values of InventorySelect.
const (
	// SelectScoped means the resources of scopes.
	SelectScoped InventorySelect = "scoped"
	// SelectAll means the resources of all bundles.
	SelectAll InventorySelect = "all"
)

// Inventory configures the synchronisation with A&AI.
type Inventory struct {
	// url is the base URL of A&AI up to and without /aai, such as https://aai.onap:8443.
	URL string `json:"url"`
	// schemaVersion is the version of the A&AI schema in paths, v24 or later. The default is v32.
	// +optional
	SchemaVersion string `json:"schemaVersion,omitempty"`
	// installation names this installation. Objects in A&AI whose data-owner is healthscope-<installation> are owned by it; nothing else is ever changed. The default is default.
	// +optional
	Installation string `json:"installation,omitempty"`
	// usernameFile and passwordFile are files that hold the user and password for basic authentication. They are read again for every request that needs them to have changed. Both or neither must be set.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is the file that holds the password.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is a file with the certificates of the authorities that A&AI's certificate is checked against. The default is the system's.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// timeoutSeconds is the deadline of one request. The default is 30.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// resyncSeconds is how often A&AI is read again in full, so that what others changed there is repaired. The default is 600.
	// +optional
	ResyncSeconds *int32 `json:"resyncSeconds,omitempty"`
	// labelPrefix is the prefix of the labels that carry state, reason and since. The default is healthscope.core.oam.dev/.
	// +optional
	LabelPrefix string `json:"labelPrefix,omitempty"`
	// selflinkBase is the URL under which the status REST server can be reached by readers of A&AI. The default is http://healthscope.
	// +optional
	SelflinkBase string `json:"selflinkBase,omitempty"`
	// select says which resources go to A&AI: scoped, those of scopes, or all, those of all bundles. The default is scoped.
	// +optional
	Select InventorySelect `json:"select,omitempty"`
	// kinds are the kinds that go to A&AI, as Kind or Kind.group. The default is workloads, pods, services and persistent volume claims. Secrets never go.
	// +optional
	Kinds []string `json:"kinds,omitempty"`
	// regions map clusters and namespaces to places in A&AI. The first entry that matches counts; what matches none is not synchronised.
	// +optional
	Regions []Region `json:"regions,omitempty"`
	// links are the VNFs that resources of a namespace may be related to. What is not listed here is not linked.
	// +optional
	Links []LinkPolicy `json:"links,omitempty"`
}

// Region maps a cluster and a namespace to a place in A&AI.
type Region struct {
	// cluster is the name of the cluster, or * for every cluster.
	Cluster string `json:"cluster"`
	// namespace is the namespace, or * for every namespace, which is the default.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// cloudOwner is the cloud-owner of the cloud-region.
	CloudOwner string `json:"cloudOwner"`
	// cloudRegionId is the cloud-region-id of the cloud-region.
	CloudRegionID string `json:"cloudRegionId"`
	// tenantId is the tenant-id of the tenant in that region.
	TenantID string `json:"tenantId"`
}

// LinkPolicy allows the resources of a namespace to be related to VNFs.
type LinkPolicy struct {
	// namespace is the namespace, or * for every namespace.
	Namespace string `json:"namespace"`
	// genericVnfIds are the vnf-ids that scopes in the namespace may name, or * for any.
	GenericVNFIDs []string `json:"genericVnfIds"`
}
