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

	// clusterName is the name of the cluster that the controller runs in, as it appears in status, metrics and A&AI. EMCO's form is
	// `<provider>+<cluster>`.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// policy holds the time limits of the installation. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#time-limits.
	// +optional
	Policy Policy `json:"policy,omitempty"`
	// monitor says what the monitor watches.
	// +optional
	Monitor Monitor `json:"monitor,omitempty"`
	// fleet says how the controller reaches other clusters.
	// +optional
	Fleet Fleet `json:"fleet,omitempty"`
	// inventory says how resources are synchronized with A&AI. Without it, nothing is written to A&AI, and scopes have no `status.inventory` and no
	// condition `InventorySynced`.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// api is the status REST server of the controller.
	// +optional
	API API `json:"api,omitempty"`
	// metrics is the metrics server of controller and monitor.
	// +optional
	Metrics Metrics `json:"metrics,omitempty"`
	// tracing says where traces go. Without it there are none.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`
	// appContext names the etcd that holds the AppContexts. With it, resources that contexts require and that do not exist count as missing: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#what-appcontexts-require. Without it, the status
	// documents of deployment intent groups and clusters are answered with 503: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/status.md.
	// +optional
	AppContext *AppContext `json:"appContext,omitempty"`
	// recorder makes the controller save bundles in the AppContexts, as EMCO's rsync does. It needs `appContext`. Without it, nothing is
	// written there. `{}` is enough.
	// +optional
	Recorder *Recorder `json:"recorder,omitempty"`
	// probes configures the HTTP probes that scopes ask for. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/probes.md.
	// +optional
	Probes Probes `json:"probes,omitempty"`
	// oam configures how the controller works with the kinds of OAM and KubeVela. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/oam.md.
	// +optional
	OAM OAM `json:"oam,omitempty"`
	// rsync makes the controller deploy AppContexts into clusters, in place of EMCO's rsync. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rsync.md.
	// +optional
	Rsync Rsync `json:"rsync,omitempty"`
	// healthCheckExprs are rules for kinds, in CEL. They take precedence over the built-in rules; the first that matches an object decides. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rules.md.
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
}

// Policy holds the time limits of the installation. All values are whole seconds.
type Policy struct {
	// pendingTimeoutSeconds is how long a resource may be Pending before it is Failed, `PendingTimeout`. A workload's own
	// `progressDeadlineSeconds` takes precedence. 0 means indefinitely.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingTimeoutSeconds *int32 `json:"pendingTimeoutSeconds,omitempty"`
	// notPresentGraceSeconds is how long something that is expected may be missing before that counts as Failed; until then it counts as
	// Pending.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NotPresentGraceSeconds *int32 `json:"notPresentGraceSeconds,omitempty"`
	// noStatusGraceSeconds is how long a custom resource without a status is Pending after its creation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NoStatusGraceSeconds *int32 `json:"noStatusGraceSeconds,omitempty"`
	// failureGraceSeconds is how long something that fails keeps the state it had, Ready with a warning or Pending, before it counts as
	// Failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailureGraceSeconds *int32 `json:"failureGraceSeconds,omitempty"`
	// recoveryHoldSeconds is how long something that was Failed must be in one better state before it is no longer Failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RecoveryHoldSeconds *int32 `json:"recoveryHoldSeconds,omitempty"`
}

// Monitor configures the monitor of a workload cluster.
type Monitor struct {
	// labelKeys are the label keys that tie objects to bundles.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	LabelKeys []string `json:"labelKeys,omitempty"`
	// namespaces are the namespaces that are watched. None means all.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	Namespaces []string `json:"namespaces,omitempty"`
	// allowedLabels are the label keys of objects that are copied to `status.resources` of bundles, and from there to A&AI. An empty list
	// copies none.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	AllowedLabels []string `json:"allowedLabels,omitzero"` // An empty list is something else than none.
	// kinds are those that are watched besides the default ones, which are in
	// https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#kinds. Secrets are watched only when they are named here,
	// and of them metadata only.
	// +optional
	Kinds []MonitoredKind `json:"kinds,omitempty"`
	// discover makes the monitor watch every kind that the cluster serves, also those that are installed later.
	// +optional
	Discover bool `json:"discover,omitempty"`
	// trustedNamespaces are the namespaces whose bundles may hold objects of other namespaces and of the cluster itself. Any other bundle
	// holds objects of its own namespace only. When `monitor.namespaces` is set, they must be among them.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// listBudgetKiB is how many KiB of whole objects a bundle holds before its largest lists are left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ListBudgetKiB *int32 `json:"listBudgetKiB,omitempty"`
	// limitKiB is how many KiB a bundle may take altogether. With more, etcd might refuse it.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=1400
	LimitKiB *int32 `json:"limitKiB,omitempty"`
	// createBundles makes the monitor create a bundle for each value of a label. Without it, bundles are created by others, such as EMCO. `{}`
	// is enough.
	// +optional
	CreateBundles *CreateBundles `json:"createBundles,omitempty"`
}

// MonitoredKind names a kind of objects.
type MonitoredKind struct {
	// apiVersion is the group and version to read the kind in, such as `cert-manager.io/v1`.
	APIVersion string `json:"apiVersion"`
	// kind is the kind, such as `Certificate`.
	Kind string `json:"kind"`
}

// BundlePreset names a set of objects that bundles are made for.
//
// +kubebuilder:validation:Enum=kubevela
type BundlePreset string

// PresetKubeVela makes a bundle for each Application of KubeVela.
const PresetKubeVela BundlePreset = "kubevela"

// CreateBundles configures which bundles the monitor creates.
type CreateBundles struct {
	// preset is a set of objects that bundles are made for. `kubevela` makes a bundle for each Application of KubeVela, by the label
	// `app.oam.dev/name`; in scopes, its members are in apps that are named as their components.
	// +optional
	Preset BundlePreset `json:"preset,omitempty"`
	// labelKey is the label: objects of a namespace that carry it with the same value share a bundle. Leave it out with a preset.
	// +optional
	LabelKey string `json:"labelKey,omitempty"`
}

// Fleet configures how the controller reaches other clusters.
type Fleet struct {
	// namespace is the namespace of the Secrets with the kubeconfigs of other clusters. Secrets are read in no other.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// monitorNamespace is the namespace of the monitor's Lease, in every cluster, the controller's own among them.
	// +optional
	MonitorNamespace string `json:"monitorNamespace,omitempty"`
	// queriesPerSecond is how many requests a second go to one cluster on average.
	// +optional
	// +kubebuilder:validation:Minimum=1
	QueriesPerSecond *int32 `json:"queriesPerSecond,omitempty"`
	// burst is how many requests may go to one cluster at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Burst *int32 `json:"burst,omitempty"`
	// timeoutSeconds is how long a cluster may take for an answer before it counts as `Unreachable`. An outage is noticed later by as much: with
	// the default, within 30 seconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// budget bounds what other clusters may take of the controller's memory and time. A cluster that takes more is cut off for a while,
	// `OverBudget`: see https://github.com/healthscope/healthscope/blob/main/config/docs/clusters.md#see-the-clusters. The controller's own
	// cluster counts in the sum, and is never cut off.
	// +optional
	Budget Budget `json:"budget,omitempty"`
}

// Budget bounds what other clusters may take of the controller's memory and time.
type Budget struct {
	// bundles is how many bundles of one cluster are held at most.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Bundles *int32 `json:"bundles,omitempty"`
	// resources is how many resources of one cluster are held at most, in bundles or because scopes refer to them.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Resources *int32 `json:"resources,omitempty"`
	// memoryMiB is how many MiB are held of one cluster at most. A resource takes about 1 KiB.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryMiB *int32 `json:"memoryMiB,omitempty"`
	// changesPerSecond is how often the bundles of one cluster, and what scopes refer to there, may change. What a cluster has saved up
	// in 10 idle seconds may come at once; what comes faster waits, and a cluster of which changes wait for 30 seconds is cut off.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ChangesPerSecond *int32 `json:"changesPerSecond,omitempty"`
	// totalMemoryMiB is how many MiB are held of all clusters together at most. Past it, the cluster of which most is held is cut off. Less
	// than half of the memory that the container may use leaves room for what is being read.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalMemoryMiB *int32 `json:"totalMemoryMiB,omitempty"`
}

// API configures the status REST server.
type API struct {
	// bindAddress is the address, `host:port`, that the status REST API listens on; `"0"` (in quotes) for none. Callers bring a Kubernetes
	// bearer token with the right to what they ask for: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rest.md#who-may-ask-for-what.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is the address, `host:port`, to listen on besides, without TLS, for callers who bring no token and may read
	// everything, and change nothing. It must be a loopback address: then only those reach it who can run programs on the machine, or in the
	// pod, or forward a port to it.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile is a file with the certificate of `api.bindAddress`, in PEM, which then speaks https. It is read again when it changes, as is
	// `api.keyFile`. Needed unless `api.bindAddress` is a loopback address: tokens must not go over the network in the clear.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is a file with the key of that certificate. Set both files, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// defaultNamespace is the namespace of a scope that is asked for by its name alone.
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
}

// Metrics configures the metrics server: /metrics, and the profiles of the program below /debug/pprof/.
type Metrics struct {
	// bindAddress is the address, `host:port`, of `/metrics`, and of the profiles of the program at `/debug/pprof/`; `"0"` (in quotes) for
	// none. Callers bring a Kubernetes bearer token with the right to get the path as a nonResourceURL.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is the address, `host:port`, of `/metrics` besides, without TLS and profiles, for callers who bring no token. It
	// must be a loopback address.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile is a file with the certificate of `metrics.bindAddress`, in PEM, which then speaks https. It is read again when it changes, as
	// is `metrics.keyFile`. Without it, an address that is not a loopback address speaks https with a certificate that the program makes for
	// itself and keeps in memory, because tokens must not go over the network in the clear: callers cannot verify that one, and have to
	// accept it (`insecureSkipVerify` in Prometheus).
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is a file with the key of that certificate. Set both files, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
}

// Tracing says where traces go.
type Tracing struct {
	// endpoint is the URL of a collector that takes OTLP over HTTP: scheme, host and port. The path `/v1/traces` is added. Credentials and
	// certificates for it are those of the exporter's environment variables `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_EXPORTER_OTLP_CERTIFICATE`.
	Endpoint string `json:"endpoint"`
	// samplingPercent is the share of traces that is sent, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`
}

// AppContext says which etcd holds the AppContexts, and how to reach it.
type AppContext struct {
	// endpoints are the URLs of etcd's members: scheme, host and port, all with the same scheme. EMCO's etcd is at `http://<host>:2379`.
	// +kubebuilder:validation:items:MinLength=1
	Endpoints []string `json:"endpoints"`
	// usernameFile is a file that holds the user of etcd's own authentication. When this file, `passwordFile` or `caFile` changes, the program
	// restarts, as after a change of settings.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is a file that holds the password. Set both files, or neither.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is a file with the certificates of the authorities that etcd's certificate is checked against. None means those of the system.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// certFile is a file with a client certificate, in PEM, for an etcd that requires one. It is read again for every connection, as is
	// `keyFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is a file with the key of that certificate. Set both files, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// timeoutSeconds is the deadline of one call.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// Recorder makes the controller save bundles in the AppContexts.
type Recorder struct {
	// readyKeys makes it also keep EMCO's keys of readiness, `resourcesready`, `resready` and `ressuccess`, by which EMCO's rsync waits for
	// what an app depends on, and for hooks.
	// +optional
	ReadyKeys bool `json:"readyKeys,omitempty"`
}

// Probes configures the HTTP probes that scopes ask for.
type Probes struct {
	// enabled makes the controller probe. It also needs a right in every namespace of every cluster in which it is to probe: the chart's value
	// `probeNamespaces` gives it in the controller's own cluster, `healthscope clusters add --probe-namespaces` in others.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// OAM configures how far the controller goes with the kinds of OAM's runtimes.
type OAM struct {
	// trustedNamespaces are the namespaces whose Applications of KubeVela may lead to workloads in other namespaces. A workload that any other
	// Application has applied outside its own namespace is Unknown, `CrossNamespace`, so that scopes do not reveal objects of other
	// namespaces.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// applicationConfigurations makes the controller keep the references of scopes to the workloads of ApplicationConfigurations, where there
	// is no OAM runtime that does it. It needs their CRD.
	// +optional
	ApplicationConfigurations bool `json:"applicationConfigurations,omitempty"`
	// labelServices makes it also label the Services of these components with the scopes that they are in, so that the scopes probe them.
	// +optional
	LabelServices bool `json:"labelServices,omitempty"`
	// writeApplicationHealth makes the controller write the health of Applications of KubeVela into them, as KubeVela's own HealthScope
	// controller does: `status.services[]` and the condition `Healthy`. It needs their CRD.
	// +optional
	WriteApplicationHealth bool `json:"writeApplicationHealth,omitempty"`
}

// Rsync configures what deploys AppContexts.
type Rsync struct {
	// enabled makes the controller deploy AppContexts. It needs `appContext`, and rights in the clusters. EMCO's rsync must not run on the
	// same etcd.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// deletionOrder is the order in which the resources of an app in a cluster are deleted: `Reverse` deletes first what was applied last,
	// and `Listed` deletes in the order in which they are applied, as EMCO's rsync does.
	// +optional
	DeletionOrder DeletionOrder `json:"deletionOrder,omitempty"`
	// grpc makes every replica of the controller serve the gRPC services of EMCO's rsync. Without it, nothing is listened on. `{}` is enough.
	// +optional
	GRPC *RsyncGRPC `json:"grpc,omitempty"`
}

// DeletionOrder is the order in which the resources of an app in a cluster are deleted.
//
// +kubebuilder:validation:Enum=Reverse;Listed
type DeletionOrder string

// The values of DeletionOrder.
const (
	// DeletionReverse deletes first what was applied last.
	DeletionReverse DeletionOrder = "Reverse"
	// DeletionListed deletes in the order in which resources are applied, as EMCO's rsync does.
	DeletionListed DeletionOrder = "Listed"
)

// RsyncGRPC configures the gRPC server of what deploys AppContexts.
type RsyncGRPC struct {
	// bindAddress is the address, `host:port`, to listen on. With `certFile`, callers bring a client certificate or a Kubernetes bearer token,
	// with the right to what they ask for: see https://github.com/healthscope/healthscope/blob/main/config/docs/rsync.md#callers. Without it,
	// callers are not asked who they are, and the address must be a loopback address: then only those reach it who can run programs on the
	// machine, or in the pod, or forward a port to it.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// certFile is a file with the certificate of the server, in PEM, which then speaks TLS. It is read again when it changes, as is `keyFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is a file with the key of that certificate. Set both files, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// clientCAFile is a file with the certificates of authorities, in PEM: a caller with a certificate that they have issued is the user that
	// it names, in the groups of its organizations. When it changes, the program restarts. Without it, callers need a token.
	// +optional
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// allowPlaintext allows an address that is not a loopback address without `certFile`, as EMCO's callers expect it: everything that reaches
	// the port may deploy, and nothing is encrypted. Restrict access with a NetworkPolicy.
	// +optional
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// InventoryPolicy says what may be done in A&AI.
//
// +kubebuilder:validation:Enum=sync;upsert-only
type InventoryPolicy string

// The values of InventoryPolicy.
const (
	// PolicySync creates, changes and deletes.
	PolicySync InventoryPolicy = "sync"
	// PolicyUpsertOnly creates and changes, and never deletes.
	PolicyUpsertOnly InventoryPolicy = "upsert-only"
)

// InventorySelect says which resources go to A&AI.
//
// +kubebuilder:validation:Enum=scoped;all
type InventorySelect string

// The values of InventorySelect.
const (
	// SelectScoped means the resources of scopes.
	SelectScoped InventorySelect = "scoped"
	// SelectAll means the resources of all bundles.
	SelectAll InventorySelect = "all"
)

// Inventory configures the synchronization with A&AI.
type Inventory struct {
	// url is the URL of A&AI: scheme, host and port, without `/aai`.
	URL string `json:"url"`
	// schemaVersion is the version of the A&AI schema in paths: v24 or later.
	// +optional
	SchemaVersion string `json:"schemaVersion,omitempty"`
	// installation is the name of this installation, as a DNS label. It owns the objects in A&AI whose `data-owner` is
	// `healthscope-<installation>`, and changes no others. Two installations that share an A&AI must have two names.
	// +optional
	Installation string `json:"installation,omitempty"`
	// usernameFile is a file that holds the user for basic authentication. It is read again for every request, so a new one needs no restart.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is a file that holds the password. Set both files, or neither.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is a file with the certificates of the authorities that A&AI's certificate is checked against. None means those of the system.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// certFile is a file with a client certificate, in PEM, for an A&AI that requires one. It is read again when it changes, as are `keyFile`
	// and `caFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is a file with the key of that certificate. Set both files, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// maxRequestsPerSecond is how many requests are sent in a second at most.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRequestsPerSecond *int32 `json:"maxRequestsPerSecond,omitempty"`
	// policy says what may be done in A&AI: `sync` creates, changes and deletes; `upsert-only` never deletes.
	// +optional
	Policy InventoryPolicy `json:"policy,omitempty"`
	// maxDeletionPercent is the share of a cluster's objects in a tenant that is deleted at a time at most; what is beyond it goes a minute
	// later, again up to that share. Twenty objects may always go, and all of a cluster that was removed. `100` is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxDeletionPercent *int32 `json:"maxDeletionPercent,omitempty"`
	// timeoutSeconds is the deadline of one request.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// resyncSeconds is how often A&AI is read again in full, so that what others changed there is repaired.
	// +optional
	// +kubebuilder:validation:Minimum=10
	ResyncSeconds *int32 `json:"resyncSeconds,omitempty"`
	// labelPrefix is the prefix of the labels in A&AI that carry `status`, `reason`, `since` and `link`.
	// +optional
	LabelPrefix string `json:"labelPrefix,omitempty"`
	// selflinkBase is the URL under which readers of A&AI reach the status REST API: scheme, host and port. It goes into `selflink`.
	// +optional
	SelflinkBase string `json:"selflinkBase,omitempty"`
	// select says which resources go to A&AI: `scoped`, those of scopes; `all`, also those of bundles that are in no scope. By default, a
	// scope has to ask for it: a bundle may come from any monitor, names no VNF, and [holds deletions](inventory.md#deletions) of its whole
	// cluster while it is incomplete.
	// +optional
	Select InventorySelect `json:"select,omitempty"`
	// kinds are the kinds that go to A&AI, as `Kind.group`, or `Kind` for the core group. `Secret` is refused.
	// +optional
	Kinds []string `json:"kinds,omitempty"`
	// regions say where resources go in A&AI, by cluster and namespace. The first entry that matches counts. What matches none does not go to
	// A&AI.
	// +optional
	Regions []Region `json:"regions,omitempty"`
	// links are the VNFs that the scopes of a namespace may relate resources to. What is not listed is not linked.
	// +optional
	Links []LinkPolicy `json:"links,omitempty"`
	// operationalStatus makes the controller write the `operational-status` of the vf-modules that apps name and `inventory.links` allows: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/inventory.md#the-operational-status-of-modules. Without it, modules are
	// neither read nor written.
	// +optional
	OperationalStatus bool `json:"operationalStatus,omitempty"`
}

// Region maps a cluster and a namespace to a place in A&AI.
type Region struct {
	// cluster is the name of the cluster, `*` for every cluster, or a pattern: `provider+edge*` matches every name that begins so. `?` stands
	// for one character, `[ab]` for one of these.
	Cluster string `json:"cluster"`
	// namespace is the namespace, a pattern, or `*` for every namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// cloudOwner is the `cloud-owner` of the cloud region.
	CloudOwner string `json:"cloudOwner"`
	// cloudRegionId is the `cloud-region-id` of the cloud region.
	CloudRegionID string `json:"cloudRegionId"`
	// tenantId is the `tenant-id` of the tenant in that region. Region and tenant must exist in A&AI; they are never created.
	TenantID string `json:"tenantId"`
}

// LinkPolicy allows the resources of a namespace to be related to VNFs.
type LinkPolicy struct {
	// namespace is the namespace of the scopes, a pattern such as `vfw-*`, or `*` for every namespace.
	Namespace string `json:"namespace"`
	// genericVnfIds are the `vnf-id`s that may be named, patterns of them, or `*` for any.
	// +optional
	GenericVNFIDs []string `json:"genericVnfIds"`
}
