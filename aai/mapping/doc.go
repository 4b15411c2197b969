// Package mapping owns the way from a judged Kubernetes resource to its A&AI document: whether it goes there, into which
// tenant, with which id, labels and relationships (Map). controllers/inventory calls it for each resource of a scope or a
// bundle. It must never import a client, a logger, metrics or a context, nor read a clock.
//
// The state goes into reserved labels, because k8s-resource has no field for it. The id depends on what identifies a
// resource and on nothing else, so a resource keeps its document when its version, state or owner changes.
package mapping
