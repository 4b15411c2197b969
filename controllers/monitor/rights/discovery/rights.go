// Package discovery has the rights of a monitor that follows which kinds the
// cluster serves: with monitor.discover, or with a kind in monitor.kinds that
// is not built into Kubernetes. It holds nothing else; the role in
// config/rbac/options/discovery is generated from it.
package discovery

// What brings kinds: CRDs, and API servers behind the API server.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,verbs=list;watch
