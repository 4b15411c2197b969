// Package fleet is what a hub sees of its clusters: which there are and whether
// they are seen as they are now, the bundles of each, judged, and the single
// objects that scopes refer to.
//
// The clusters are those of Secrets with a kubeconfig, and the hub's own, which
// is a member as any other. Each has one goroutine that does all that concerns
// it, so that no cluster waits for another one (member), and one connection, or
// two while one takes the other's place (line). A connection tells a pulse of
// everything that comes from the cluster and everything that does not, and
// liveness, which is pure, decides what that means.
//
// View holds the judged bundles and the state of every cluster. Objects watches
// the kinds that scopes refer to directly, on demand. Scopes, the inventory and
// status documents read here and nowhere else, so that all of them see one truth.
//
// The package must not import other controllers: they read it, and it knows none of them.
package fleet
