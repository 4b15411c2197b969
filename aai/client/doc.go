// Package client speaks to A&AI over REST, about k8s-resources and nothing
// else: typed calls, A&AI's rules for headers and encoding, errors sorted by
// what to do about them.
//
// It exists so that nobody else has to know that A&AI answers XML unless told
// otherwise, calls an empty list 404 and a timeout 400. It keeps no state
// about A&AI and never repeats a request: whoever calls decides that, knowing
// what else there is to do.
//
// Of this project it imports package aai alone, and it knows nothing of
// Kubernetes.
package client
