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
	// fleet configures how the controller reaches other clusters.
	// +optional
	Fleet Fleet `json:"fleet,omitempty"`
	// inventory configures the synchronisation with A&AI. Without it there is none.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// api configures the status REST server.
	// +optional
	API API `json:"api,omitempty"`
	// metrics configures the metrics server of controller and monitor.
	// +optional
	Metrics Metrics `json:"metrics,omitempty"`
	// tracing makes controller and monitor send traces. Without it there are none.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`
	// appContext says which etcd holds the AppContexts. Without it, the status documents of deployment intent groups and clusters are not served.
	// +optional
	AppContext *AppContext `json:"appContext,omitempty"`
	// recorder makes the controller save bundles in the AppContexts, as EMCO's rsync does. It needs appContext. Without it, nothing is written there.
	// +optional
	Recorder *Recorder `json:"recorder,omitempty"`
	// healthCheckExprs are rules for kinds, in CEL. They go before the program's own rules; the first that matches an object counts.
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
}

// Policy is the installation's policy in matters of time. All values are whole seconds.
type Policy struct {
	// pendingTimeoutSeconds is how long a resource may be Pending before it is Failed, unless the workload has a progressDeadlineSeconds of its own. 0 means for ever. The default is 600.
	// +optional
	PendingTimeoutSeconds *int32 `json:"pendingTimeoutSeconds,omitempty"`
	// notPresentGraceSeconds is how long an expected resource may be missing before it is Failed. The default is 60.
	// +optional
	NotPresentGraceSeconds *int32 `json:"notPresentGraceSeconds,omitempty"`
	// noStatusGraceSeconds is how long a custom resource without a status is Pending after its creation, before it is what the rule for such objects says. The default is 60.
	// +optional
	NoStatusGraceSeconds *int32 `json:"noStatusGraceSeconds,omitempty"`
	// failureGraceSeconds delays Failed: for so long a resource that fails keeps the state it had, Ready with a warning or Pending. The default is 0.
	// +optional
	FailureGraceSeconds *int32 `json:"failureGraceSeconds,omitempty"`
	// recoveryHoldSeconds delays the way back: a resource that was Failed stays so until it has been in one better state for so long. The default is 0.
	// +optional
	RecoveryHoldSeconds *int32 `json:"recoveryHoldSeconds,omitempty"`
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
	AllowedLabels []string `json:"allowedLabels,omitzero"` // An empty list is something else than none.
	// kinds are watched besides the default ones. Secrets are watched only when they are named here, and of them metadata only.
	// +optional
	Kinds []MonitoredKind `json:"kinds,omitempty"`
	// discover makes the monitor watch every kind that the cluster serves, also those that are installed later. The default is false.
	// +optional
	Discover bool `json:"discover,omitempty"`
	// trustedNamespaces are the namespaces whose bundles may hold objects of other namespaces and of the cluster itself. The default is none: a bundle holds objects of its own namespace.
	// +optional
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// listBudgetKiB is how many KiB of whole objects a bundle holds before the largest lists are left out. The default is 256.
	// +optional
	ListBudgetKiB *int32 `json:"listBudgetKiB,omitempty"`
	// limitKiB is how many KiB a bundle may take altogether, at most 1400 because etcd refuses more. The default is 1024.
	// +optional
	LimitKiB *int32 `json:"limitKiB,omitempty"`
	// createBundles makes the monitor create a bundle for each value of a label. Without it, bundles are created by others, such as EMCO.
	// +optional
	CreateBundles *CreateBundles `json:"createBundles,omitempty"`
}

// MonitoredKind names a kind of objects.
type MonitoredKind struct {
	// apiVersion is the group and version to read the kind in, such as cert-manager.io/v1.
	APIVersion string `json:"apiVersion"`
	// kind is the kind, such as Certificate.
	Kind string `json:"kind"`
}

// CreateBundles configures which bundles the monitor creates.
type CreateBundles struct {
	// labelKey is the key of the label: objects of a namespace that carry it with the same value share a bundle. The default is healthscope.core.oam.dev/name.
	// +optional
	LabelKey string `json:"labelKey,omitempty"`
}

// Fleet configures how the controller reaches other clusters.
type Fleet struct {
	// namespace is the namespace of the Secrets with the kubeconfigs of other clusters. The default is healthscope-clusters.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// monitorNamespace is the namespace, in every cluster, of the monitor's Lease. The default is healthscope-system.
	// +optional
	MonitorNamespace string `json:"monitorNamespace,omitempty"`
	// queriesPerSecond is how many requests a second go to one cluster on average. The default is 20.
	// +optional
	QueriesPerSecond *int32 `json:"queriesPerSecond,omitempty"`
	// burst is how many requests may go to one cluster at once. The default is 30.
	// +optional
	Burst *int32 `json:"burst,omitempty"`
	// timeoutSeconds is how long a cluster may take for an answer before it counts as away, at most 60. The default is 10.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// budget bounds what other clusters may take of the controller's memory. A cluster that takes more is cut off for a while.
	// +optional
	Budget Budget `json:"budget,omitempty"`
}

// Budget bounds what other clusters may take of the controller's memory.
type Budget struct {
	// bundles is how many bundles of one cluster are held at most. The default is 10000.
	// +optional
	Bundles *int32 `json:"bundles,omitempty"`
	// resources is how many resources of one cluster are held at most, in bundles or because scopes refer to them. The default is 100000.
	// +optional
	Resources *int32 `json:"resources,omitempty"`
	// memoryMiB is how many MiB are held of one cluster at most. The default is 100.
	// +optional
	MemoryMiB *int32 `json:"memoryMiB,omitempty"`
	// totalMemoryMiB is how many MiB are held of all clusters together at most. Past it, the cluster of which most is held is cut off. The default is 400.
	// +optional
	TotalMemoryMiB *int32 `json:"totalMemoryMiB,omitempty"`
}

// API configures the status REST server.
type API struct {
	// bindAddress is host:port to listen on, or 0 for none. Callers bring a Kubernetes bearer token with the right to what they ask for. The default is 127.0.0.1:8082.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is host:port to listen on besides, for callers without a token, who may then ask for everything. It must be a loopback address. The default is none.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile and keyFile are files that hold the certificate of bindAddress and its key, and make it speak https. They are read again when they change. Both or neither must be set, and both unless bindAddress is a loopback address: tokens must not go over the network in the clear.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the file that holds the key of the certificate.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// defaultNamespace is the namespace of scopes that are asked for without one. The default is default.
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
}

// Metrics configures the metrics server: /metrics, and the profiles of the program below /debug/pprof/.
type Metrics struct {
	// bindAddress is host:port to listen on, or 0 for none. Callers bring a Kubernetes bearer token with the right to get the path as a nonResourceURL. Unless it is a loopback address it speaks https. The default is 127.0.0.1:8080.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is host:port to listen on besides, for /metrics and for callers without a token. It must be a loopback address. The default is none.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile and keyFile are files that hold the certificate of bindAddress and its key, and make it speak https. They are read again when they change. Both or neither must be set. Without them an address that is not a loopback address has a certificate of its own making, which nobody can check.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the file that holds the key of the certificate.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
}

// Tracing says where traces go.
type Tracing struct {
	// endpoint is the URL of a collector that takes OTLP over HTTP, such as http://otel-collector.monitoring:4318; the path /v1/traces is added.
	Endpoint string `json:"endpoint"`
	// samplingPercent is the share of traces that is sent, from 0 to 100. The default is 100.
	// +optional
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`
}

// AppContext says which etcd holds the AppContexts, and how to reach it.
type AppContext struct {
	// endpoints are the URLs of etcd's members, such as https://etcd-0:2379, all with the same scheme.
	Endpoints []string `json:"endpoints"`
	// usernameFile and passwordFile are files that hold the user and password of etcd's own authentication. New contents make the program start anew, as another setting does. Both or neither must be set.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is the file that holds the password.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is a file with the certificates of the authorities that etcd's certificate is checked against. New contents make the program start anew. The default is the system's.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// certFile and keyFile are files that hold our own certificate and its key, for an etcd that wants one. They are read again for every connection. Both or neither must be set.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the file that holds the key of our own certificate.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// timeoutSeconds is the deadline of one call, at most 15. The default is 5.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// Recorder makes the controller save bundles in the AppContexts. It has no settings.
type Recorder struct{}

// InventoryPolicy says what may be done in A&AI.
type InventoryPolicy string

// The values of InventoryPolicy.
const (
	// PolicySync creates, changes and deletes.
	PolicySync InventoryPolicy = "sync"
	// PolicyUpsertOnly creates and changes, and never deletes.
	PolicyUpsertOnly InventoryPolicy = "upsert-only"
)

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
	// certFile and keyFile are files that hold our own certificate and its key, for an A&AI that wants one. These files and caFile are read again when they change. Both or neither must be set.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the file that holds the key of our own certificate.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// maxRequestsPerSecond is how many requests are sent in a second at most. The default is 50.
	// +optional
	MaxRequestsPerSecond *int32 `json:"maxRequestsPerSecond,omitempty"`
	// policy says what may be done in A&AI: sync creates, changes and deletes; upsert-only never deletes. The default is sync.
	// +optional
	Policy InventoryPolicy `json:"policy,omitempty"`
	// maxDeletionPercent is the share of a cluster's objects in a tenant that is deleted at a time at most; what is beyond it goes a minute later, again up to that share. Twenty objects may always go, and all of a cluster that was removed. 100 is no limit. The default is 20.
	// +optional
	MaxDeletionPercent *int32 `json:"maxDeletionPercent,omitempty"`
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
	// operationalStatus makes the controller write the operational-status of the vf-modules that apps of scopes name and links allow: in-service-path, or out-of-service-path. The default is false: modules are neither read nor written.
	// +optional
	OperationalStatus bool `json:"operationalStatus,omitempty"`
}

// Region maps a cluster and a namespace to a place in A&AI.
type Region struct {
	// cluster is the name of the cluster, * for every cluster, or a pattern such as provider+edge*.
	Cluster string `json:"cluster"`
	// namespace is the namespace, a pattern, or * for every namespace, which is the default.
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
	// namespace is the namespace, a pattern such as vfw-*, or * for every namespace.
	Namespace string `json:"namespace"`
	// genericVnfIds are the vnf-ids that scopes in the namespace may name, or patterns of them, or * for any.
	GenericVNFIDs []string `json:"genericVnfIds"`
}
