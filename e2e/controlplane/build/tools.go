//go:build tools

// Package build is the module of the test control plane's programs. It is a module of its own, because Kubernetes as a
// dependency of the project's module would choose the versions of everything else there. It holds no code: its go.mod
// says which versions package assets compiles and `make controlplane` installs, and this file keeps the requirements
// from being tidied away.
package build

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
