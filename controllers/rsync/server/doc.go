// Package server owns the gRPC server of rsync for clients of EMCO's rsync: the services of package rpc, and the standard health
// service. Package app runs it in every replica. It must never deploy anything itself: it writes to etcd, and rsync acts.
//
// A request only writes an event to etcd, where rsync reads it, so every replica can serve it. The response means that the event is
// in etcd. Notifications of bundles come from etcd too: a client that is notified finds the bundle there.
package server
