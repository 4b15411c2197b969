// Package createbundles has the rights of a monitor with
// monitor.createBundles, which makes the bundles itself. It holds nothing
// else; the role in config/rbac/options/createbundles is generated from it.
package createbundles

// Bundles are made, and never deleted.
//
// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=create
