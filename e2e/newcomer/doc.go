// Package newcomer runs the pages that a new user follows: every command in the README and in the tutorials, in the printed
// order, with the real kubectl and Helm on real control planes. It compares the output with the page.
//
// The nodes are simulated: no image is pulled, no container runs, and pods become Ready automatically. HealthScope's own
// containers are the exception. For each of its Deployments that Helm creates, the program runs as a process with the arguments,
// files and ServiceAccount of the pod, by means of package kubelet. The tutorials run in the environment of package
// installation.
//
// Of make commands, the test only checks that the target exists: `make test` would run this test again, the demo has tests of
// its own, and the test itself builds what `make build` builds.
package newcomer
