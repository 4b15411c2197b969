// Package appcontext owns the AppContexts in etcd: the hierarchical run-time data of what EMCO (the Edge Multi-Cluster
// Orchestrator) brings to clusters. The status API and the recorder call it, and programs that make or change contexts. It
// must never write what EMCO could not read, never write a part of a change, and never answer with old data without AsOf.
//
// A context holds apps, an app clusters, a cluster resources; each of them may carry states, instructions and meta data.
//
// The keys under /context/ and their values are EMCO's, byte for byte, so that EMCO reads what is written here and the
// other way round. What EMCO keeps in MongoDB, the history of what users did and which contexts came of it, is kept under
// /healthscope/; an index is written in the same transaction as what it is made of.
//
// Open returns a Store, which speaks to etcd. AppContext has the functions of EMCO's library of the same name, for
// programs that make and change contexts. Snapshot is a context at one revision, in memory, for programs that read them.
// Store.Snapshot and Store.View read it, and a Cache keeps those current that are asked for.
//
// Every call has a deadline. Writes are transactions: what is added must not be there, and what it is added to must.
package appcontext
