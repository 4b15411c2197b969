// Package recorder owns the bundles that HealthScope saves in the AppContexts in etcd, where EMCO's rsync saves them, so
// that its readers work without rsync. Package app sets it up. It must never create a place in etcd, and never write
// over what another writer keeps up to date.
//
// A place is an app in a cluster in a context. What a bundle is saved for is
// determined by its label emco/deployment-id and its cluster; a place that is not in
// etcd is not created. Each place is looked at when its bundle is written in its
// cluster, comes or goes, and when its cluster comes back; nothing is polled.
// decide, which is pure, returns what to do about a place. Whole bundles are read
// from their clusters only when there is something to save.
package recorder
