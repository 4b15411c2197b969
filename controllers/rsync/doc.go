// Package rsync owns the deployment of AppContexts from etcd into the clusters of the fleet, as EMCO's rsync does; it is
// off by default. Package app sets it up, and package commands, the status API and the gRPC server put events into its
// queues. It must never call something applied that was not acknowledged, and never touch or delete what is not the
// context's.
//
// Everything that it has to remember is in etcd: the queue of events of each context, the states, and what became of each
// resource. A program that is killed continues where it was. One program works at a time: it holds a lock in etcd, and each
// of its writes is a transaction that compares the lock's key, so that one that has lost it writes nothing more.
//
// What is to be done when is decided in healthscope/deploy. Here are a worker for each context with work to do, and what
// takes a step in a cluster.
package rsync
