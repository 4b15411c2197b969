// Package scope owns the HealthScope controller: it gathers the judged bundles and objects that belong to a scope,
// decides how healthy the scope is, writes that to the scope's status, and reports changes by events and metrics.
// Package app sets it up, and package inventory reads its Registry. It must never judge a resource, and of the other
// controllers it may import fleet only.
//
// Package healthscope judges the health of resources; a scope only selects
// resources and rolls up their health.
//
// The files, from those that call to those that are called:
//
//	setup, reconciler            one reconcile: gather, diagnose pods, decide, write, record events
//	gather                       the order in which all that belongs to a scope is collected
//	bundles, objects, probes     what references and selectors lead to; workloadselector is the same by label
//	expectedresources, carryover what is missing, and what the status has of clusters that cannot be read
//	gatherer, clusters, results  what has been gathered so far; references reads a spec
//	decide, culprits, history    the judgement of a scope and its roll-up; pods looks at the pods of workloads
//	status, oam, conditions      the status for a judgement; write, conflict and events publish it
//	eventsource, dependencies    which changes lead to which scopes
//	registry, metrics            what others read of the judgements
package scope
