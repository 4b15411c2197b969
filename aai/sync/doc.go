// Package sync keeps the documents of a tenant in A&AI equal to the desired
// ones: it remembers what A&AI holds, asks package plan what to do, does it,
// and sorts what goes wrong.
//
// It is level-triggered and keeps nothing on disk. What it remembers comes from
// reading A&AI, so after a restart, or after any time away, one list per tenant
// shows what is missing, outdated or left over. As long as the desired
// documents do not change and the next resync is not due, a pass sends no
// request at all.
//
// The package has no goroutine outside a pass, knows nothing of Kubernetes, and
// never repeats a request that failed for want of A&AI: the caller's queue
// comes back.
package sync
