// Package kubelet runs the pods of Deployments as processes of this machine, as a kubelet runs them in containers: with the
// arguments and the environment from the cluster, with the volumes that they mount, and with a token of their ServiceAccount.
//
// It changes only what must differ between a process and a container: the paths of volumes, the ports on which the process
// listens, and --kubeconfig, which it adds in place of the files that a cluster mounts into every container.
package kubelet
