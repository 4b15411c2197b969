// Package monitor owns the status of ResourceBundleStates: it watches the labelled objects of a cluster and writes, for
// each bundle, what package bundle makes of the objects that belong to it. Package app sets it up, once in every
// workload cluster. It must never decide about health, and never import anything of the hub (controllers/scope,
// controllers/inventory, aai): of the rules it knows only that users may have their own.
//
// The parts, in the order of the data:
//
//   - watch follows one kind by one label key (a label selector cannot OR two
//     keys) with an informer of package observe, and keeps the objects, stripped
//     and packed, in a store by label value;
//   - watches are all of them: they wake the bundles that a changed object
//     belongs to, and say when everything has been read once;
//   - kindDiscovery follows which kinds the cluster serves, where kinds may come and
//     go, and has the watches follow these; a kind that it does not find any more is
//     let go when its own watch has found out that it is not served;
//   - membership decides which objects belong to a bundle: those of its own
//     namespace, unless that is trusted with more;
//   - reconciler takes one bundle, gathers its objects, lets bundle.Build
//     decide and writes the whole status when it differs;
//   - rates decides how soon the same bundle may be written again, and standDown
//     leaves a bundle to another monitor that writes it;
//   - setup makes two controllers of the reconciler: small bundles do not wait for
//     the worker of large ones;
//   - writeStates holds, per bundle, what was written last and when;
//   - creator makes bundles for label values, if that is wanted, in a controller of its own.
//
// Objects in stores, and bundles in the cache, are held compressed: they are
// nearly all that a monitor holds, and most of them are looked at seldom.
//
// Everything is read from watches: there is no polling, no GET, and no write
// that changes nothing, also after a restart. Nothing is written before every
// kind has been read completely, so that a restart never makes a resource
// vanish for a moment. A kind that the cluster does not serve or that may not
// be read is reported once, asked for again at growing intervals, and holds
// nothing up; what was known of the objects of a kind that may not be read stays, as Unknown.
//
// What decides whether an object belongs to a bundle has three readers that must agree: watches.members, which asks membership for labels
// and leaves out what does not belong, the comparison with the bundles of other monitors (differs in outdated.go), which would call these
// out of date for good, and the creator (watches.isCarried), which would make bundles for nothing.
package monitor
