// Package sync owns the passes that keep the documents of a tenant in A&AI equal to the desired ones: it remembers what A&AI
// holds, asks package plan what to do about each object, does it, and sorts what fails. controllers/inventory calls Sync when
// something has changed, and when the last report says that something is due. It must never write when its replica does not
// lead, never keep anything on disk, never run a goroutine outside a pass, and never import Kubernetes.
//
// It is level-triggered. What it remembers comes from reading A&AI, so after a restart, or after any time away, one list per
// tenant shows what is missing, outdated or left over. As long as the desired documents do not change and the next resync is
// not due, a pass sends no request at all.
//
// A request that failed for want of A&AI is not repeated in the same pass: the caller's queue comes back.
package sync
