// Package scope is the HealthScope controller: it gathers the judged bundles
// and objects that belong to a scope, decides how healthy the scope is, writes
// that to the scope's status, and reports changes by events and metrics.
//
// Health itself is not decided here. Package healthscope judges; a scope only
// chooses whom it asks, and weighs the answers.
//
// Of the other controllers it may import fleet only. The inventory, which reads
// Registry, is handed in.
package scope
