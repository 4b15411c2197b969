// Package fleet owns what a hub sees of its clusters: which there are and whether they are seen as they are now, the
// bundles of each, judged, and the single objects that scopes refer to. Package app sets it up, and the other
// controllers of the hub and the status documents read it. It must never import another controller: they read it, and it
// knows none of them.
//
// The clusters are those of Secrets with a kubeconfig, and the hub's own, which
// is a member like any other. Each member has one goroutine that does all that
// concerns its cluster, so that no cluster waits for another one (member), and
// one connection. A second one is opened only to replace the first, when more
// than the token has changed. A connection notes in its liveness, which is pure,
// every answer of the cluster and every request without one, and liveness decides
// what that means. A bundle syncer judges the bundles that the connection reads.
//
// View holds the judged bundles and the state of every cluster. Objects watches
// the kinds that scopes refer to directly, on demand. Scopes, the inventory and
// status documents read here and nowhere else, so that all of them see one
// truth, and subscribe to what changes.
//
// Read the files in this order, callers before what they call: setup, hub, member,
// connection and liveness keep the clusters, with probe and access for the API
// server itself; bundlesyncer and bundlestore, their bundles; objects and
// kindinformer, single objects; metered and budget bound what is read of a member;
// view is what others see. TestTrack of the package observe and TestLiveness show
// as tables what the states go through.
package fleet
