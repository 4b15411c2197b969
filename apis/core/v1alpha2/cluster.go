package v1alpha2

// Names by which Secrets tell a hub of its member clusters. Such Secrets are in
// a namespace of their own, by default DefaultClustersNamespace.
const (
	// LabelClusterKubeconfig marks, with the value "true", a Secret with the kubeconfig of a member cluster. No other Secret is read.
	LabelClusterKubeconfig = "healthscope.core.oam.dev/cluster-kubeconfig"
	// AnnotationClusterName is the cluster's name, such as EMCO's <provider>+<cluster>. Without it, it is the Secret's name.
	AnnotationClusterName = "healthscope.core.oam.dev/cluster-name"
	// AnnotationClusterUID is the UID of the cluster's namespace kube-system, by which a cluster is known that is added under a second name.
	AnnotationClusterUID = "healthscope.core.oam.dev/cluster-uid"
	// AnnotationNamespaces are the namespaces, comma separated, that the cluster's data is read from. Without it, these are all.
	AnnotationNamespaces = "healthscope.core.oam.dev/namespaces"
	// AnnotationMaintenance says, on the Secret of a cluster or on a HealthScope, why its alerts are muted for now.
	AnnotationMaintenance = "healthscope.core.oam.dev/maintenance"
	// AnnotationTokenExpires is when the token in the kubeconfig ends, as RFC 3339. A token without it is not renewed.
	AnnotationTokenExpires = "healthscope.core.oam.dev/token-expires"
	// AnnotationTokenLifetime is how long that token is valid altogether, as a Go duration such as 24h0m0s. The next token is asked for as long.
	AnnotationTokenLifetime = "healthscope.core.oam.dev/token-lifetime"
	// KubeconfigKey is the key of the kubeconfig in the data of such a Secret.
	KubeconfigKey = "kubeconfig"
	// DefaultClustersNamespace is the namespace of the Secrets when the configuration does not say otherwise.
	DefaultClustersNamespace = "healthscope-clusters"
)
