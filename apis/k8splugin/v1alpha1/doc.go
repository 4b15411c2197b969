// Package v1alpha1 owns the types of ResourceBundleState, the object in which a monitor reports the status of one application
// in one workload cluster, and how it is decoded. Monitors, hubs and other programs that read or write bundles use it. It must
// never fail on a bundle because of one field, nor import anything but the standard library and apimachinery.
//
// Group, version, kind, names and the lists in status are those of EMCO and of
// ONAP's multicloud-k8s, so that bundles written by either are read, and
// bundles written here can be read by either. What is added is additive:
// status.resources, status.summary and status.truncated.
//
// +kubebuilder:object:generate=true
// +groupName=k8splugin.io
package v1alpha1
