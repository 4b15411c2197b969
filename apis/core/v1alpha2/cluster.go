package v1alpha2

// Labels, annotations and data of the Secrets that define the member clusters of a hub. These Secrets are in a dedicated namespace,
// by default DefaultClustersNamespace.
const (
	// LabelClusterKubeconfig marks, with the value "true", a Secret with the kubeconfig of a member cluster. No other Secret is read.
	LabelClusterKubeconfig = "healthscope.core.oam.dev/cluster-kubeconfig"
	// AnnotationClusterName is the name of the cluster, such as EMCO's <provider>+<cluster>. Default: the name of the Secret.
	AnnotationClusterName = "healthscope.core.oam.dev/cluster-name"
	// AnnotationClusterUID is the UID of the namespace kube-system of the cluster. It identifies a cluster that is added again under
	// another name.
	AnnotationClusterUID = "healthscope.core.oam.dev/cluster-uid"
	// AnnotationNamespaces lists the namespaces from which the cluster's data is read, separated by commas. Default: all namespaces.
	AnnotationNamespaces = "healthscope.core.oam.dev/namespaces"
	// AnnotationMaintenance is, on the Secret of a cluster or on a HealthScope, the reason why its alerts are currently muted.
	AnnotationMaintenance = "healthscope.core.oam.dev/maintenance"
	// AnnotationTokenExpires is the time at which the token in the kubeconfig expires, in RFC 3339. A token without it is not renewed.
	AnnotationTokenExpires = "healthscope.core.oam.dev/token-expires"
	// AnnotationTokenLifetime is the validity period of that token, as a Go duration such as 24h0m0s. The next token is requested
	// for the same period.
	AnnotationTokenLifetime = "healthscope.core.oam.dev/token-lifetime"
	// KubeconfigKey is the key of the kubeconfig in the data of such a Secret.
	KubeconfigKey = "kubeconfig"
	// DefaultClustersNamespace is the default namespace of the Secrets.
	DefaultClustersNamespace = "healthscope-clusters"
)
