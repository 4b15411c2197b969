// Package assets builds the programs of the test control plane from Go modules and says where they are: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok, with the manifests that kwok needs. They are
// compiled once per machine and kept in the user's cache directory by version, so that nothing is downloaded but modules
// and every checkout on the machine shares them.
//
// The versions are those of the module github.com/healthscope/healthscope/e2e/controlplane/build, whose go.mod lies
// beside this package and is the only place where they are written. When the environment variable KUBEBUILDER_ASSETS is
// set, its directory is used instead of the cache, as controller-runtime's envtest does.
//
// The package imports nothing of this project but process. Unix only.
package assets
