// Package server owns the gRPC server of rsync, for the callers of EMCO's: the services of package rpc, and the standard
// health service. Package app runs it in every replica. It must never deploy anything itself: it writes to etcd, and
// rsync acts.
//
// What it is asked for is only written to etcd, from where rsync takes it, so that every replica serves. An answer says that
// the event is there. Notifications of bundles come from etcd too: whoever is notified finds there what it is notified of.
package server
