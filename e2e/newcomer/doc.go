// Package newcomer goes the way of somebody who has just found the project: its
// tests run every command in the README, one after the other as they stand
// there, on a real control plane with the real kubectl and Helm, and compare
// what is printed with what the README shows.
//
// Simulated are the nodes: no image is pulled and no container runs, and pods
// become Ready by themselves. HealthScope's own containers are the exception: for
// each of its Deployments that Helm has made, the program runs as a process, with
// the arguments, the files and the ServiceAccount of the pod, as package kubelet does it.
//
// Of the commands of make it is looked only whether make knows them: `make test` would run this test again, the demo has
// tests of its own, and what `make build` makes is made by the test.
package newcomer
