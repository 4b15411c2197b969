// Package rsync owns the deployment of AppContexts from etcd into the clusters of the fleet, as EMCO's rsync does; it is
// off by default. Package app sets it up, and package commands, the status API and the gRPC server put events into its
// queues. It must never report an object as applied that was not acknowledged, never overwrite a field of another field
// manager unless it was applied client-side or the context corrects drift, and never delete an object that does not carry
// the label of its app. An object that another app or deployment of rsync has is overwritten, and takes the label: both are
// applied by the same field manager.
//
// All its state is in etcd: the queue of events of each context, the states, and the result of each resource. After a
// restart, the program continues where it was. One program works at a time: it holds a lock in etcd, and each of its writes
// is a transaction that compares the lock's key, so that a program that has lost the lock writes nothing more.
//
// Package healthscope/deploy decides which steps to take, and when. This package runs a worker for each deployment with
// work to do, and takes the steps in the clusters.
package rsync
