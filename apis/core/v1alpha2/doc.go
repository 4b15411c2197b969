// Package v1alpha2 holds HealthScope, the object that answers whether an
// application is healthy in every cluster it runs in.
//
// Group, version and kind are OAM's. The schema is a superset of the two that
// were published, oam-kubernetes-runtime 0.4 and KubeVela 1.8: a manifest
// written for either applies unchanged, and a client of either reads the
// fields it expects.
//
// The package holds types only and imports nothing but apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=core.oam.dev
package v1alpha2
