// Package trusted has the rights of a monitor with monitor.trustedNamespaces,
// whose bundles also report objects of the cluster. It holds nothing else; the
// role in config/rbac/options/trusted is generated from it.
package trusted

// The one kind without namespaces that is reported by default.
//
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=list;watch
