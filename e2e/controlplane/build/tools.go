//go:build tools

// Package build is the module of the test control plane's programs. It is a separate module, because Kubernetes as a
// dependency of the project's module would determine the versions of all other dependencies. It holds no code: its go.mod
// sets the versions that package assets compiles and `make controlplane` installs. This file keeps `go mod tidy` from
// removing the requirements.
package build

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
