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

// Configuration is the configuration file. All fields except apiVersion and kind are optional, and so is the file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// clusterName is the name of the cluster in which the controller runs, as it appears in status, metrics and A&AI. EMCO's form is
	// `<provider>+<cluster>`.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// policy sets the time limits of health judgements. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/health.md#time-limits.
	// +optional
	Policy Policy `json:"policy,omitempty"`
	// monitor configures the objects that the monitor watches, and the bundles that it writes.
	// +optional
	Monitor Monitor `json:"monitor,omitempty"`
	// fleet says how the controller reaches other clusters.
	// +optional
	Fleet Fleet `json:"fleet,omitempty"`
	// inventory configures the synchronization of resources with A&AI. Without it, nothing is written to A&AI, and scopes have no
	// `status.inventory` and no condition `InventorySynced`.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// api configures the status REST server of the controller.
	// +optional
	API API `json:"api,omitempty"`
	// metrics configures the metrics server of controller and monitor.
	// +optional
	Metrics Metrics `json:"metrics,omitempty"`
	// tracing configures the export of traces. Without it, there are no traces.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`
	// appContext configures the connection to the etcd that holds the AppContexts. With it, resources that contexts require and that
	// do not exist count as missing: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/healthscope.md#what-appcontexts-require. Without it, the
	// response to requests for status documents of deployment intent groups and clusters is 503: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/status.md.
	// +optional
	AppContext *AppContext `json:"appContext,omitempty"`
	// recorder makes the controller save bundles in the AppContexts, as EMCO's rsync does. It requires `appContext`. Without it, no
	// bundles are saved. An empty object, `{}`, enables it.
	// +optional
	Recorder *Recorder `json:"recorder,omitempty"`
	// probes configures the HTTP probes that scopes request. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/probes.md.
	// +optional
	Probes Probes `json:"probes,omitempty"`
	// oam configures the use of the kinds of OAM and KubeVela. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/oam.md.
	// +optional
	OAM OAM `json:"oam,omitempty"`
	// rsync configures the deployment of AppContexts to clusters, in place of EMCO's rsync. See
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rsync.md.
	// +optional
	Rsync Rsync `json:"rsync,omitempty"`
	// healthCheckExprs are health rules for kinds, in CEL. They take precedence over the built-in rules. The first rule that matches
	// an object applies. See https://github.com/healthscope/healthscope/blob/main/config/docs/rules.md.
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
}

// Policy sets the time limits of health judgements. All values are whole seconds.
type Policy struct {
	// pendingTimeoutSeconds is the time after which a Pending resource is Failed with the reason `PendingTimeout`, in seconds. 0
	// means no limit. A workload's own `progressDeadlineSeconds` takes precedence.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingTimeoutSeconds *int32 `json:"pendingTimeoutSeconds,omitempty"`
	// notPresentGraceSeconds is the time after which a missing resource that is expected counts as Failed, in seconds. Until then it
	// counts as Pending.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NotPresentGraceSeconds *int32 `json:"notPresentGraceSeconds,omitempty"`
	// noStatusGraceSeconds is the time for which a custom resource without a status is Pending after its creation, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NoStatusGraceSeconds *int32 `json:"noStatusGraceSeconds,omitempty"`
	// failureGraceSeconds is the time for which a resource that fails keeps its previous state, Ready with a warning or Pending,
	// before it is Failed, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailureGraceSeconds *int32 `json:"failureGraceSeconds,omitempty"`
	// recoveryHoldSeconds is the time for which a resource that was Failed must be in one better state before it is no longer
	// Failed, in seconds.
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
	// namespaces are the namespaces that the monitor watches. Without any: all namespaces.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	Namespaces []string `json:"namespaces,omitempty"`
	// allowedLabels are the keys of the labels that are copied from objects to `status.resources` of bundles, and from there to
	// A&AI. With an empty list, no labels are copied.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	AllowedLabels []string `json:"allowedLabels,omitzero"` // An empty list differs from an absent one, which means the default.
	// kinds are the kinds that the monitor watches besides the default kinds, which are listed in
	// https://github.com/healthscope/healthscope/blob/main/config/docs/monitor.md#kinds. Secrets are watched only if they are listed
	// here, and only their metadata.
	// +optional
	Kinds []MonitoredKind `json:"kinds,omitempty"`
	// discover makes the monitor watch every kind that the cluster serves, including kinds that are installed later.
	// +optional
	Discover bool `json:"discover,omitempty"`
	// trustedNamespaces are the namespaces whose bundles may have objects of other namespaces and cluster-scoped objects. All other
	// bundles have only objects of their own namespace. If `monitor.namespaces` is set, it must include all of
	// `monitor.trustedNamespaces`.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// listBudgetKiB is the maximum size of the whole objects in a bundle, in KiB. Above it, the largest lists are left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ListBudgetKiB *int32 `json:"listBudgetKiB,omitempty"`
	// limitKiB is the maximum size of a bundle, in KiB. etcd may reject larger objects.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=1400
	LimitKiB *int32 `json:"limitKiB,omitempty"`
	// createBundles makes the monitor create a bundle for each value of a label. An empty object, `{}`, enables it. Without it,
	// other programs create the bundles, such as EMCO.
	// +optional
	CreateBundles *CreateBundles `json:"createBundles,omitempty"`
}

// MonitoredKind names a kind of objects.
type MonitoredKind struct {
	// apiVersion is the API group and version in which the kind is read, such as `cert-manager.io/v1`.
	APIVersion string `json:"apiVersion"`
	// kind is the kind, such as `Certificate`.
	Kind string `json:"kind"`
}

// BundlePreset names a set of objects for which bundles are created.
//
// +kubebuilder:validation:Enum=kubevela
type BundlePreset string

// PresetKubeVela creates a bundle for each Application of KubeVela.
const PresetKubeVela BundlePreset = "kubevela"

// CreateBundles configures which bundles the monitor creates.
type CreateBundles struct {
	// preset is a set of objects for which bundles are created. `kubevela` creates a bundle for each Application of KubeVela, by the
	// label `app.oam.dev/name`. In scopes, the members of such a bundle are in apps that have the names of their components.
	// +optional
	Preset BundlePreset `json:"preset,omitempty"`
	// labelKey is the key of the label. Objects of a namespace with the same value of this label share a bundle. Omit it with a
	// preset.
	// +optional
	LabelKey string `json:"labelKey,omitempty"`
}

// Fleet configures how the controller reaches other clusters.
type Fleet struct {
	// namespace is the namespace of the Secrets with the kubeconfigs of other clusters. Secrets in other namespaces are not read.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// monitorNamespace is the namespace of the monitor's Lease in every cluster, including the controller's own.
	// +optional
	MonitorNamespace string `json:"monitorNamespace,omitempty"`
	// queriesPerSecond is the maximum average number of requests to one cluster per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	QueriesPerSecond *int32 `json:"queriesPerSecond,omitempty"`
	// burst is how many requests may go to one cluster at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Burst *int32 `json:"burst,omitempty"`
	// timeoutSeconds is the time after which a cluster that does not respond counts as `Unreachable`, in seconds. A larger value
	// delays the detection of an outage, which takes at most 30 seconds with the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// budget limits the use of the controller's memory and time by other clusters. A cluster that exceeds a limit is cut off: the
	// controller does not read it for a while, and its state is `OverBudget`. The controller's own cluster counts in the total, and
	// is never cut off. See https://github.com/healthscope/healthscope/blob/main/config/docs/clusters.md#see-the-clusters.
	// +optional
	Budget Budget `json:"budget,omitempty"`
}

// Budget limits the use of the controller's memory and time by other clusters.
type Budget struct {
	// bundles is the maximum number of bundles of one cluster in the controller's memory.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Bundles *int32 `json:"bundles,omitempty"`
	// resources is the maximum number of resources of one cluster in the controller's memory: those in bundles, and those that
	// scopes refer to.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Resources *int32 `json:"resources,omitempty"`
	// memoryMiB is the maximum memory for the data of one cluster, in MiB. A resource takes about 1 KiB.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryMiB *int32 `json:"memoryMiB,omitempty"`
	// changesPerSecond is the maximum average number of changes of one cluster per second: of its bundles, and of the objects that
	// scopes refer to. After an idle time, a cluster may make the changes of up to 10 seconds at once. Changes above the limit wait,
	// and a cluster whose changes wait for 30 seconds is cut off.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ChangesPerSecond *int32 `json:"changesPerSecond,omitempty"`
	// totalMemoryMiB is the maximum memory for the data of all clusters together, in MiB. Above it, the cluster with the most data
	// is cut off. Set it to less than half of the memory limit of the container, because data that is being read needs memory, too.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalMemoryMiB *int32 `json:"totalMemoryMiB,omitempty"`
}

// API configures the status REST server.
type API struct {
	// bindAddress is the address, `host:port`, on which the status REST API listens; `"0"` (in quotes) for none. Callers must send a
	// Kubernetes bearer token with the right to what they request: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rest.md#who-may-ask-for-what.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is an additional address, `host:port`, without TLS, for callers without a token. They may read
	// everything, and change nothing. It must be a loopback address, so that only users who can run programs on the machine or in
	// the pod, or can forward a port to it, reach it. Without it, every caller needs a token.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile is the path of a file with the certificate of `api.bindAddress`, in PEM, which then uses https. It is read again when
	// it changes, as is `api.keyFile`. It is required unless `api.bindAddress` is a loopback address, because tokens must not be
	// sent over the network unencrypted.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the path of a file with the private key of that certificate, in PEM. Set both `certFile` and `keyFile`, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// defaultNamespace is the namespace of a scope in a request that has only the name of the scope.
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
}

// Metrics configures the metrics server, which serves /metrics, and the profiles of the program below /debug/pprof/.
type Metrics struct {
	// bindAddress is the address, `host:port`, of `/metrics`, and of the profiles of the program at `/debug/pprof/`; `"0"` (in
	// quotes) for none. Callers must send a Kubernetes bearer token with the right to `get` the path as a non-resource URL.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// anonymousBindAddress is an additional address, `host:port`, of `/metrics`, without TLS and profiles, for callers without a
	// token. It must be a loopback address. Without it, every caller needs a token.
	// +optional
	AnonymousBindAddress string `json:"anonymousBindAddress,omitempty"`
	// certFile is the path of a file with the certificate of `metrics.bindAddress`, in PEM, which then uses https. It is read again
	// when it changes, as is `metrics.keyFile`. Without it, an address that is not a loopback address uses https with a self-signed
	// certificate that the program keeps in memory, because tokens must not be sent over the network unencrypted. Callers cannot
	// verify that certificate, and must accept it without verification (`insecureSkipVerify` in Prometheus).
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the path of a file with the private key of that certificate, in PEM. Set both `certFile` and `keyFile`, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
}

// Tracing configures the export of traces.
type Tracing struct {
	// endpoint is the URL of a collector that receives OTLP over HTTP: scheme, host and port. The program adds the path
	// `/v1/traces`. Credentials and certificates come from the exporter's environment variables `OTEL_EXPORTER_OTLP_HEADERS` and
	// `OTEL_EXPORTER_OTLP_CERTIFICATE`.
	Endpoint string `json:"endpoint"`
	// samplingPercent is the share of traces that are sent, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`
}

// AppContext configures the connection to the etcd that holds the AppContexts.
type AppContext struct {
	// endpoints are the URLs of the members of etcd: scheme, host and port. All have the same scheme. EMCO's etcd is at
	// `http://<host>:2379`.
	// +kubebuilder:validation:items:MinLength=1
	Endpoints []string `json:"endpoints"`
	// usernameFile is the path of a file with the user name for etcd's own authentication. When this file, `passwordFile` or
	// `caFile` changes, the program restarts, as after a change of the configuration.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is the path of a file with the password. Set both `usernameFile` and `passwordFile`, or neither.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is the path of a file with the CA certificates, in PEM, for the verification of etcd's certificate. Without it: the CA
	// certificates of the system.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// certFile is the path of a file with a client certificate, in PEM, for an etcd that requires one. It is read again for every
	// connection, as is `keyFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the path of a file with the private key of that certificate, in PEM. Set both `certFile` and `keyFile`, or neither.
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
	// readyKeys makes the controller also write EMCO's keys of readiness: `resourcesready`, `resready` and `ressuccess`. EMCO's
	// rsync reads them to wait for the apps on which an app depends, and for hooks.
	// +optional
	ReadyKeys bool `json:"readyKeys,omitempty"`
}

// Probes configures the HTTP probes that scopes request.
type Probes struct {
	// enabled makes the controller send probes. The controller also needs a right in every namespace in which it probes Services, in
	// every cluster. The chart's value `probeNamespaces` grants it in the controller's own cluster, and `healthscope clusters add
	// --probe-namespaces` in other clusters.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// OAM configures the use of the kinds of OAM and KubeVela.
type OAM struct {
	// trustedNamespaces are the namespaces whose KubeVela Applications may lead to workloads in other namespaces. A workload that
	// any other Application has applied outside its own namespace is Unknown with the reason `CrossNamespace`, so that scopes do not
	// reveal objects of other namespaces.
	// +optional
	// +kubebuilder:validation:items:MinLength=1
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// applicationConfigurations makes the controller maintain the references of scopes to the workloads of
	// ApplicationConfigurations, in a cluster without an OAM runtime that does this. It requires the CRD of
	// ApplicationConfigurations.
	// +optional
	ApplicationConfigurations bool `json:"applicationConfigurations,omitempty"`
	// labelServices makes the controller also label the Services of the components of ApplicationConfigurations with their scopes,
	// so that the scopes probe them. It requires `oam.applicationConfigurations`.
	// +optional
	LabelServices bool `json:"labelServices,omitempty"`
	// writeApplicationHealth makes the controller write the health of KubeVela Applications into their status, as KubeVela's own
	// HealthScope controller does: `status.services[]` and the condition `Healthy`. It requires the CRD of Applications.
	// +optional
	WriteApplicationHealth bool `json:"writeApplicationHealth,omitempty"`
}

// Rsync configures the deployment of AppContexts.
type Rsync struct {
	// enabled makes the controller deploy AppContexts. It requires `appContext`, and rights in the clusters. EMCO's rsync must not
	// run on the same etcd.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// deletionOrder is the order in which the resources of an app in a cluster are deleted. `Reverse` deletes first the
	// resources that were applied last. `Listed` deletes the resources in the order in which they are applied, as EMCO's rsync does.
	// +optional
	DeletionOrder DeletionOrder `json:"deletionOrder,omitempty"`
	// grpc makes every replica of the controller serve the gRPC services of EMCO's rsync. An empty object, `{}`, enables it. Without
	// it, there is no gRPC server.
	// +optional
	GRPC *RsyncGRPC `json:"grpc,omitempty"`
}

// DeletionOrder is the order in which the resources of an app in a cluster are deleted.
//
// +kubebuilder:validation:Enum=Reverse;Listed
type DeletionOrder string

// The values of DeletionOrder.
const (
	// DeletionReverse deletes first the resources that were applied last.
	DeletionReverse DeletionOrder = "Reverse"
	// DeletionListed deletes in the order in which resources are applied, as EMCO's rsync does.
	DeletionListed DeletionOrder = "Listed"
)

// RsyncGRPC configures the gRPC server for the deployment of AppContexts.
type RsyncGRPC struct {
	// bindAddress is the address, `host:port`, on which the server listens; `"0"` (in quotes) for none. With `certFile`, callers
	// must have a client certificate or a Kubernetes bearer token, with the right to what they request: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/rsync.md#callers. Without `certFile`, callers are not
	// authenticated, and the address must be a loopback address, unless `allowPlaintext` is set. Only users who can run programs on
	// the machine or in the pod, or can forward a port to it, reach a loopback address.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// certFile is the path of a file with the certificate of the server, in PEM, which then uses TLS. It is read again when it
	// changes, as is `keyFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the path of a file with the private key of that certificate, in PEM. Set both `certFile` and `keyFile`, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// clientCAFile is the path of a file with the CA certificates for client certificates, in PEM. The user of a client certificate
	// is its common name, and the groups are its organizations. When the file changes, the program restarts. Without it, callers
	// need a token.
	// +optional
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// allowPlaintext allows an address that is not a loopback address without `certFile`, as EMCO's callers expect. Every program
	// that reaches the port can then deploy, and nothing is encrypted: restrict access with a NetworkPolicy.
	// +optional
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// InventoryPolicy is the set of operations that are allowed in A&AI.
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

// InventorySelect selects the resources that are written to A&AI.
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
	// schemaVersion is the version of the A&AI schema in the paths of requests: `v24` or later.
	// +optional
	SchemaVersion string `json:"schemaVersion,omitempty"`
	// installation is the name of this installation, as a DNS label. It owns the objects in A&AI whose `data-owner` is
	// `healthscope-<installation>`, and changes no others. Two installations that share an A&AI must have two names.
	// +optional
	Installation string `json:"installation,omitempty"`
	// usernameFile is the path of a file with the user name for basic authentication. It is read again for every request, so that a
	// new user name needs no restart.
	// +optional
	UsernameFile string `json:"usernameFile,omitempty"`
	// passwordFile is the path of a file with the password. Set both `usernameFile` and `passwordFile`, or neither.
	// +optional
	PasswordFile string `json:"passwordFile,omitempty"`
	// caFile is the path of a file with the CA certificates, in PEM, for the verification of A&AI's certificate. Without it: the CA
	// certificates of the system.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// certFile is the path of a file with a client certificate, in PEM, for an A&AI that requires one. It is read again when it
	// changes, as are `keyFile` and `caFile`.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// keyFile is the path of a file with the private key of that certificate, in PEM. Set both `certFile` and `keyFile`, or neither.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// maxRequestsPerSecond is the maximum number of requests to A&AI per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRequestsPerSecond *int32 `json:"maxRequestsPerSecond,omitempty"`
	// policy says what may be done in A&AI: `sync` creates, changes and deletes; `upsert-only` never deletes.
	// +optional
	Policy InventoryPolicy `json:"policy,omitempty"`
	// maxDeletionPercent is the maximum share of a cluster's objects in a tenant that are deleted at a time, in percent. The others
	// are deleted a minute later, again up to that share. Twenty objects may always be deleted, and all objects of a cluster that
	// was removed. `100` means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxDeletionPercent *int32 `json:"maxDeletionPercent,omitempty"`
	// timeoutSeconds is the time limit of one request, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// resyncSeconds is the interval at which A&AI is read again in full, in seconds, so that changes by other programs are repaired.
	// +optional
	// +kubebuilder:validation:Minimum=10
	ResyncSeconds *int32 `json:"resyncSeconds,omitempty"`
	// labelPrefix is the prefix of the labels in A&AI that carry `status`, `reason`, `since` and `link`.
	// +optional
	LabelPrefix string `json:"labelPrefix,omitempty"`
	// selflinkBase is the URL at which readers of A&AI reach the status REST API: scheme, host and port. It is the base of the
	// property `selflink`.
	// +optional
	SelflinkBase string `json:"selflinkBase,omitempty"`
	// select selects the resources that are written to A&AI: with `scoped`, those of scopes; with `all`, also those of bundles that
	// are in no scope. The default is `scoped`, because a bundle may come from any monitor, names no VNF, and prevents deletions
	// of its whole cluster while it is incomplete: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/inventory.md#deletions.
	// +optional
	Select InventorySelect `json:"select,omitempty"`
	// kinds are the kinds of resources that are written to A&AI, as `Kind.group`, or `Kind` for the core group. `Secret` is not
	// allowed.
	// +optional
	Kinds []string `json:"kinds,omitempty"`
	// regions map the clusters and namespaces of resources to tenants in A&AI. The first entry that matches applies. Resources that
	// match no entry are not written to A&AI.
	// +optional
	Regions []Region `json:"regions,omitempty"`
	// links are the VNFs to which the scopes of a namespace may relate resources. Other VNFs are not related.
	// +optional
	Links []LinkPolicy `json:"links,omitempty"`
	// operationalStatus makes the controller write the `operational-status` of the vf-modules that apps name and that
	// `inventory.links` allows: see
	// https://github.com/healthscope/healthscope/blob/main/config/docs/inventory.md#the-operational-status-of-modules. Without it,
	// modules are neither read nor written.
	// +optional
	OperationalStatus bool `json:"operationalStatus,omitempty"`
}

// Region maps a cluster and a namespace to a tenant in A&AI.
type Region struct {
	// cluster is the name of the cluster, `*` for every cluster, or a pattern: `provider+edge*` matches every name with this prefix.
	// `?` matches one character, and `[ab]` one of the characters in brackets.
	Cluster string `json:"cluster"`
	// namespace is the name of the namespace, a pattern, or `*` for every namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// cloudOwner is the `cloud-owner` of the cloud region.
	CloudOwner string `json:"cloudOwner"`
	// cloudRegionId is the `cloud-region-id` of the cloud region.
	CloudRegionID string `json:"cloudRegionId"`
	// tenantId is the `tenant-id` of the tenant in that region. Region and tenant must exist in A&AI: the controller never creates
	// them.
	TenantID string `json:"tenantId"`
}

// LinkPolicy allows the resources of a namespace to be related to VNFs.
type LinkPolicy struct {
	// namespace is the namespace of the scopes, a pattern such as `vfw-*`, or `*` for every namespace.
	Namespace string `json:"namespace"`
	// genericVnfIds are the `vnf-id`s that scopes may name, patterns of them, or `*` for every `vnf-id`.
	// +optional
	GenericVNFIDs []string `json:"genericVnfIds"`
}
