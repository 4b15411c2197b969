package monitor

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// standDownPeriod is how long a bundle is left alone after another monitor wrote it.
const standDownPeriod = time.Hour

// standDown returns how long a bundle is left to another monitor, and to which one:
// for an hour after that monitor's last write. EMCO's and ONAP's monitors write
// the whole status and drop the fields that they do not know; that is how they
// are distinguished from a person who edits a status, which is reverted at once. A
// monitor that is alive writes again before long; one that was removed does not,
// and its bundles are taken over. Zero means that the bundle is this monitor's.
//
// It counts from when that write was first seen, if that is sooner: a clock that differs from
// the API server's, now or then, makes it no longer than an hour.
func (e *writeState) standDown(b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (wait time.Duration, writer string) {
	if b.Status.Summary != nil {
		return 0, ""
	}
	var last time.Time
	for _, entry := range b.ManagedFields {
		if entry.Subresource != "status" || entry.Manager == string(fieldOwner) || entry.Time == nil {
			continue
		}
		if entry.Time.After(last) {
			last, writer = entry.Time.Time, entry.Manager
		}
	}
	if !e.coWrote.Equal(last) || e.coWriteSeen.After(now) {
		e.coWrote, e.coWriteSeen = last, now
	}
	if last.After(e.coWriteSeen) {
		last = e.coWriteSeen
	}
	if wait = last.Add(standDownPeriod).Sub(now); writer == "" || wait <= 0 {
		return 0, ""
	}
	return wait, writer
}

// writers returns who wrote the status, and when.
func writers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource == "status" {
			kept = append(kept, metav1.ManagedFieldsEntry{
				Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time, Subresource: entry.Subresource,
			})
		}
	}
	return kept
}
