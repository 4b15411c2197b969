// Package observe owns the watches of Kubernetes API servers: it lists and watches, and knows at any time whether what
// was read is current, and if not, why and since when. The controllers that follow objects of a cluster call it: fleet,
// monitor, oam, probe and app. It must never import another controller, and never call current what it does not know to
// be so.
//
// Track is its pure core. Tracked reports to it what happens to the requests of a ListerWatcher.
package observe
