// Package appcontext owns the AppContexts in etcd: the hierarchical run-time data of what EMCO (the Edge Multi-Cluster
// Orchestrator) brings to clusters. The status API and the recorder call it, and programs that make or change contexts. It
// must never write what EMCO could not read, never write a part of a change, and never answer with old data without AsOf.
//
// A context holds apps, an app holds clusters, and a cluster holds resources. Each of them may carry states, instructions
// and meta data.
//
// The keys under /context/ and their values are EMCO's, byte for byte, so that each program reads what the other writes.
// EMCO keeps the history of user actions and of the contexts that they made in MongoDB; this package keeps it under
// /healthscope/. An index is written in the same transaction as the keys that it is derived from.
//
// Open returns a Store, which speaks to etcd. AppContext has the functions of EMCO's library of the same name, for
// programs that make and change contexts. Snapshot is a context at one revision, in memory, for programs that read them.
// Store.Snapshot and Store.View read it, and a Cache keeps those current that are asked for.
//
// Every call has a deadline. Writes are transactions: a key that is added must not exist, and its parent must.
package appcontext
