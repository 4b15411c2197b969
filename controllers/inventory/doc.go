// Package inventory owns the synchronization of A&AI with the judged resources of scopes, or of all bundles, and the
// standing of each resource there that scopes and metrics show. Package app sets it up and gives it to package scope as
// the source of that standing; package commands prints its plan. It must never decide what a request to A&AI looks like:
// aai/sync and aai/client do.
//
// It is a loop over the tenants of A&AI, and over the VNFs whose modules are kept (reconciler.go). A change of a scope or a
// bundle (inputs.go) wakes those that it concerns. A reconcile computes what A&AI is to hold (desired.go, modules.go) and
// what must not be deleted (guards.go); package aai/sync compares that with what A&AI holds, and writes the difference; the
// outcome becomes the sync status, which scopes, metrics and the list of rejected objects show (status.go).
//
// It is level-triggered: there is no journal. After a restart, the same is computed again.
package inventory
