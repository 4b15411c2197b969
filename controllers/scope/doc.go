// Package scope owns the HealthScope controller: it gathers the judged bundles and objects that belong to a scope,
// decides how healthy the scope is, writes that to the scope's status, and reports changes by events and metrics.
// Package app sets it up, and package inventory reads its Registry. It must never judge a resource, and of the other
// controllers it may import fleet only.
//
// Health itself is not decided here. Package healthscope judges; a scope only
// chooses whom it asks, and weighs the answers.
package scope
