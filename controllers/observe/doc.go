// Package observe owns the watches of Kubernetes API servers. It lists and watches objects, and knows at any time whether
// what was read is current, and if not, why and since when. The packages that follow objects of a cluster call it: fleet,
// monitor, oam, probe and app. It must never import another controller, and never report data as current that may be
// stale.
//
// A place is what one ListerWatcher reads: the objects of a resource in a namespace or a cluster. Track is the pure core
// of the package. Tracked reports the outcome of the requests of a ListerWatcher to it.
package observe
