// Package newcomer runs the pages that a new user follows: every command in the README and in the tutorials, one after the
// other as they are printed there, with the real kubectl and Helm on real control planes. It compares the output with the page.
//
// The nodes are simulated: no image is pulled, no container runs, and pods become Ready automatically. HealthScope's own containers
// are the exception. For each of its Deployments that Helm makes, the program runs as a process with the arguments, files and
// ServiceAccount of the pod, as package kubelet does it. The tutorials run in the environment of package installation.
//
// Commands of make are only checked to exist: `make test` would run this test again, the demo has tests of its own, and the
// test itself makes what `make build` makes.
package newcomer
