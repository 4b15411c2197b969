// Package secrets has the rights of a monitor with Secrets in monitor.kinds.
// It holds nothing else; the role in config/rbac/options/secrets is generated
// from it.
package secrets

// RBAC cannot grant metadata alone: who may list Secrets may read them. The
// monitor keeps their metadata only.
//
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
