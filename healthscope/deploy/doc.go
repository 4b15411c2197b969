// Package deploy owns what rsync decides: which states and queue an AppContext has after an event, and which steps bring its
// resources into clusters or take them away. controllers/rsync calls it, and reads and writes etcd and clusters. It must never
// lose an event, call something applied that was not acknowledged, or begin a step before what it depends on, and never import
// a client, a logger, metrics or a context, nor read a clock.
//
// A Lifecycle is what etcd holds of the state machine. Enqueue, Next and Finish return the one after it, and Changes the
// keys in which the two differ. A Plan is what a context wants where, and Progress the steps that are left and may begin.
package deploy
