// Package fleet is what a hub sees of its clusters: the bundles of each,
// judged, and the single objects that scopes refer to.
//
// View holds the judged bundles, kept by one small reconciler for each
// cluster. Objects watches the kinds that scopes refer to directly, on demand.
// Scopes, the inventory and status documents read here and nowhere else, so
// that all of them see one truth.
//
// The package must not import other controllers: they read it, and it knows none of them.
package fleet
