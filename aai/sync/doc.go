// Package sync owns the passes that keep the documents of a tenant in A&AI equal to the desired ones: it keeps the observed state
// of A&AI in memory, calls package plan to decide about each object, carries out the decisions, and classifies failures.
// controllers/inventory calls Sync after a change, and at the time of Report.NextPass. It must never write when its replica does
// not lead, never store anything on disk, never run a goroutine outside a pass, and never import Kubernetes.
//
// It is level-triggered. The observed state comes from A&AI, so after a restart or an interruption of any length, one list for each tenant shows
// what is missing, outdated or left over. While the desired documents do not change and no resync is due, a pass sends no request.
//
// A pass does not repeat a request that failed because A&AI is unavailable: the caller's queue retries.
package sync
