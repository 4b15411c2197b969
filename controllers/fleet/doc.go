// Package fleet owns what a hub knows of its clusters: which clusters there are and whether what is known of them is
// current, the judged bundles of each cluster, and the single objects that scopes refer to. Package app sets it up, and
// the other controllers of the hub and the status documents read it. It must never import another controller.
//
// The clusters are those of Secrets with a kubeconfig, and the hub's own, which
// is a member like any other. Each member has one goroutine, so that no cluster
// waits for another one, and one connection. A second connection is opened only
// to replace the first, when more than the token has changed. A connection
// records in its liveness, which does no I/O, every answer of the cluster and
// every request without an answer, and liveness decides what that means. A bundle
// syncer judges the bundles that the connection reads.
//
// View holds the judged bundles and the state of every cluster. Objects watches,
// on demand, the kinds that scopes refer to directly. Scopes, the inventory and
// status documents read only these two, so that all of them see the same state,
// and subscribe to changes.
//
// Read the files in this order, callers before what they call: setup, hub, member,
// connection and liveness for the clusters; bundlesyncer and bundlestore for their
// bundles; objects and kindinformer for single objects; access, metered and budget
// for how a member is read, and how much; view for what others read. environment is
// what hub and members share. TestTrack of package observe and TestLiveness show the
// state transitions as tables.
package fleet
