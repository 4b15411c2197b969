// Package scope owns the HealthScope controller: it gathers the judged bundles and objects that belong to a scope,
// decides how healthy the scope is, writes that to the scope's status, and reports changes by events and metrics.
// Package app sets it up, and package inventory reads its Registry. It must never judge a resource, and of the other
// controllers it may import fleet only.
//
// Package healthscope judges the health of resources; a scope only selects
// resources and rolls up their health.
package scope
