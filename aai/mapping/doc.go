// Package mapping maps a judged Kubernetes resource to its A&AI document (Map): whether it is written to A&AI, into which
// tenant, and with which id, labels and relationships. controllers/inventory calls it for each resource of a scope or a
// bundle. It must never import a client, a logger, metrics or a context, nor read a clock.
//
// The state is written to reserved labels, because k8s-resource has no field for it. The id depends only on the installation
// and on what identifies a resource, so a resource keeps its document when its version, state or owner changes.
package mapping
