// Package deploy owns what rsync decides: which states and queue an AppContext has after an event, and which steps bring its
// resources into clusters or take them away. controllers/rsync calls it, and reads and writes etcd and clusters. It must never
// lose an event, report a resource as applied that was not acknowledged, or begin a step before its dependencies. It must never
// import a client, a logger, metrics or a context, nor read a clock.
//
// A Lifecycle is the stored state of the state machine. Enqueue, Next and Finish return the next one, and Changes returns the
// keys in which two differ. A Plan is the desired state of the clusters, and Progress holds the steps that are left.
package deploy
