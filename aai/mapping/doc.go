// Package mapping turns judged Kubernetes resources into A&AI documents: which
// resource, into which tenant, with which id, labels and relationships.
//
// The state goes into reserved labels, because k8s-resource has no field for
// it. The id depends on what identifies a resource and on nothing else, so a
// resource keeps its document when its version, state or owner changes.
//
// The package is pure: it imports no client, logger, metrics or context and
// reads no clock.
package mapping
