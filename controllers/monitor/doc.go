// Package monitor owns the status of ResourceBundleStates. It watches the labelled objects of a cluster and writes, for each bundle, the
// status that package bundle builds from the objects of the bundle. Package app sets it up, once in every workload cluster. It must never
// decide about health, and never import packages of the hub (controllers/scope, controllers/inventory, aai). It only passes the users' own
// health rules on to package bundle.
//
// The parts, in the order of the data flow:
//
//   - watch follows one kind by one label key (a label selector cannot OR two keys) with an informer of package observe, and keeps the
//     objects, stripped and packed, in a store by label value;
//   - watches holds all watches. It enqueues the bundles of a changed object, and reports when every kind has been read once;
//   - kindDiscovery tracks which kinds the cluster serves, where kinds may be added or removed, and updates the watches. It removes a
//     kind that it no longer finds once the watch of the kind has confirmed that it is not served;
//   - membership decides which objects belong to a bundle: those of its own namespace, and for a trusted namespace those of others;
//   - reconciler gathers the objects of a bundle, calls bundle.Build, and writes the whole status if it differs. It runs in two
//     controllers, so that small bundles do not wait for the worker of large ones;
//   - writeStates holds, per bundle, what was written last and how soon it may be written again, and coWriter whether the bundle is left to
//     another monitor that writes it;
//   - creator optionally creates bundles for label values, in its own controller.
//
// Objects in stores, and bundles in the cache, are compressed: they take nearly all the memory of a monitor, and are rarely read.
//
// The monitor reads objects from watches only. It writes nothing that does not change, not even after a restart, and nothing before every
// kind has been read completely, so that a restart never removes a resource from a bundle temporarily. A kind that the cluster does not
// serve, or that the monitor may not read, is logged once, retried at growing intervals, and delays nothing. The known objects of a kind
// that may not be read stay in their bundles, as Unknown.
//
// Three places decide whether an object belongs to a bundle and must agree: watches.gather, which uses membership; the comparison with
// the bundles of other monitors (differs in standdown.go), which would otherwise report them as out of date permanently; and the creator
// (watches.isCarried), which would otherwise create needless bundles.
package monitor
