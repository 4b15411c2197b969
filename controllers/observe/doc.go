// Package observe is the one way in which HealthScope watches Kubernetes API servers: it lists and watches, and knows at
// any time whether what was read is current, and if not, why and since when.
//
// Track is its pure core. Tracked reports to it what happens to the requests of a ListerWatcher.
package observe
