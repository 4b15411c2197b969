// Package kubelet runs the pods of Deployments as processes of this machine,
// as a kubelet runs them in containers: with the arguments and the environment
// that are in the cluster, with the volumes that they mount, and with a token of
// their ServiceAccount.
//
// What a process cannot share with a container is rewritten, and nothing else:
// paths of volumes, the ports that it listens on, and --kubeconfig, which
// stands for the files that a cluster puts into every container.
package kubelet
