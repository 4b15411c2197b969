// Package deploy decides what rsync does: which states and queue an AppContext has after an event, and which steps bring
// its resources into clusters or take them away. It is pure: controllers/rsync reads and writes etcd and clusters.
//
// A Lifecycle is what etcd holds of the state machine. Enqueue, Next and Finish return the one after it, and Changes the
// keys in which the two differ. A Plan is what a context wants where, and Progress the steps that are left and may begin.
//
// It must never lose an event, never call something applied that was not acknowledged, and never begin a step before what
// it depends on.
package deploy
