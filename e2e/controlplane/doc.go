// Package controlplane starts Kubernetes control planes for tests, benchmarks and the demo: a real etcd and
// kube-apiserver, and on request the real controller-manager, scheduler and kwok, which plays nodes whose pods become
// Ready. They are processes of the caller, without containers, and any number of them runs at once: each has its own
// temporary directory, its own certificate authority and one loopback port.
//
// TLS, RBAC and service-account tokens work as in a cluster. What differs: etcd does not wait for the disk, nothing
// implements the network of Services and pods, containers never run, and without controllers the ServiceAccount admission
// plugin is off, because there is no controller that makes the accounts it asks for.
//
// Nothing outlives the caller: Stop ends the processes and removes the directory, and when the caller dies without Stop
// (a signal, a panic, a test binary's timeout) a small watching shell does the same.
//
// The programs come from package assets and are built by `make controlplane`. The package must not import anything of
// this project that a control plane is used to test. Unix only.
package controlplane
