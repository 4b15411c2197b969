// Package v1alpha1 holds ResourceBundleState, the object in which a monitor
// reports the status of one application in one workload cluster.
//
// Group, version, kind, names and the lists in status are those of EMCO and of
// ONAP's multicloud-k8s, so that bundles written by either are read, and
// bundles written here can be read by either. What is added is additive:
// status.resources, status.summary and status.truncated.
//
// The package holds types only and imports nothing but apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=k8splugin.io
package v1alpha1
