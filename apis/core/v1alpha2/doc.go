// Package v1alpha2 owns the types of HealthScope, the object that answers whether an application is healthy in every cluster
// it runs in, and the labels and annotations by which other objects name a scope or a cluster. The controllers use it, and
// other programs that read or write scopes. It must never judge, nor import anything but the standard library and
// apimachinery.
//
// Group, version and kind are OAM's. The schema is a superset of the two that
// were published, oam-kubernetes-runtime 0.4 and KubeVela 1.8: a manifest
// written for either applies unchanged, and a client of either reads the
// fields it expects.
//
// +kubebuilder:object:generate=true
// +groupName=core.oam.dev
package v1alpha2
