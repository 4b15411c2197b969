// Package recorder owns the bundles that HealthScope saves in the AppContexts in etcd. EMCO's rsync saves them at the same
// keys, so EMCO's readers work without rsync. Package app sets it up. It must never create a place in etcd, and never
// overwrite what another writer keeps up to date.
//
// A place is an app in a cluster in a context. The label emco/deployment-id of a
// bundle and its cluster determine its place. The recorder reconciles a place when
// its bundle is created, written or deleted, and when its cluster is reachable
// again; it does not poll, except for places that are not in etcd. decide is pure
// and returns what to do about a place. Whole bundles are read from their clusters
// only when there is something to save.
package recorder
