// Package controlplane starts Kubernetes control planes for tests, benchmarks and the demo: a real etcd and
// kube-apiserver, and on request the real controller-manager, scheduler and kwok, which simulates nodes whose pods become
// Ready. The programs are child processes of the caller, without containers. Any number of control planes can run at the
// same time: each has its own temporary directory, its own certificate authority and one loopback port.
//
// TLS, RBAC and service-account tokens work as in a cluster. The differences are: etcd does not wait for the disk, there
// is no network of Services and pods, and containers never run. Without controllers, the ServiceAccount admission plugin
// is off, because no controller creates the accounts that it requires.
//
// Nothing outlives the caller: Stop ends the processes and removes the directory. When the caller dies without Stop (a
// signal, a panic, a test binary's timeout), a shell script that waits for this does the same.
//
// Package assets locates the programs, and `make controlplane` builds them. The package must not import packages of this
// project that are tested with a control plane. It is for Unix only.
package controlplane
