// Package assets builds the programs of the test control plane from Go modules and locates them: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl and kwok, with the manifests that kwok needs. It compiles them once per
// machine and stores them in the user's cache directory by version. It downloads only modules, and every checkout on the
// machine shares the programs.
//
// Only the go.mod of the module github.com/healthscope/healthscope/e2e/controlplane/build, next to this package, sets the
// versions. If the environment variable KUBEBUILDER_ASSETS is set, the package uses its directory instead of the cache, as
// controller-runtime's envtest does.
//
// The package imports only package process of this project. It is for Unix only.
package assets
