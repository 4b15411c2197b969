package scope

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
)

const (
	// conflictWrites is how often in a row another controller must overwrite the status before that is a conflict. One or two writes may come from a person.
	conflictWrites = 3
	// conflictGrace is the time without a write of another controller after which a conflict is over.
	conflictGrace = 4 * pruning.Interval
)

// writeConflict records the writes of another controller to the status of a scope: each controller reverts what the other one wrote.
type writeConflict struct {
	// count is the number of writes of another controller found in a row, and lastFound is when the last one was found.
	count     int
	lastFound time.Time
	// manager is the field manager of the other controller, and at is when it wrote, by the API server's clock.
	manager string
	at      time.Time
	// lastWrite is when this controller last wrote the status.
	lastWrite time.Time
}

// statusSubresource is the subresource that statuses are written to.
const statusSubresource = "status"

// recordConflict records that a status is about to be written. When a conflict begins, it records an event and writes a log line.
func (r *reconciler) recordConflict(ctx context.Context, e *scopeEntry, before *corev1alpha2.HealthScope, now time.Time) {
	if !e.conflict.recordWrite(before.ManagedFields, now) {
		return
	}
	message := conflictMessage(e.conflict.manager)
	r.recorder.Eventf(before, nil, corev1.EventTypeWarning, corev1alpha2.ConditionStatusConflict, "Judge", "%s", message)
	log.FromContext(ctx).Info("The status is also written by another controller", "manager", e.conflict.manager)
}

// conflictMessage returns the message of a conflict; empty when there is none.
func conflictMessage(manager string) string {
	if manager == "" {
		return ""
	}
	return fmt.Sprintf("%q writes the status too, and takes back what HealthScope's controller writes, which is now once in %s: turn off the HealthScope controller of oam-kubernetes-runtime or KubeVela", manager, pruning.Interval)
}

// wait returns how long to wait before the next write of a status; zero means that it may be written now.
// During a conflict, one write in every pruning.Interval is enough to see whether it continues.
func (c *writeConflict) wait(now time.Time) time.Duration {
	if since := now.Sub(c.lastWrite); c.otherManager(now) != "" && since >= 0 && since < pruning.Interval {
		return pruning.Interval - since
	}
	return 0
}

// recordWrite records that a status with these managed fields is about to be overwritten, and reports whether a conflict begins.
func (c *writeConflict) recordWrite(entries []metav1.ManagedFieldsEntry, now time.Time) (begun bool) {
	c.lastWrite = now
	manager, at := writtenSince(entries)
	if manager == "" || at.Equal(c.at) { // The status may have been written here more than once within the second of that write.
		return false
	}
	c.count, c.lastFound, c.manager, c.at = c.count+1, now, manager, at
	return c.count == conflictWrites
}

// writtenSince returns, by managed fields, the field manager that has written a status since this controller did, and when; empty
// when there is none. A write within the same second counts as a later one, because managed fields hold whole seconds.
func writtenSince(entries []metav1.ManagedFieldsEntry) (manager string, at time.Time) {
	var ours time.Time
	for _, entry := range entries {
		switch {
		case entry.Subresource != statusSubresource || entry.Time == nil:
		case entry.Manager == string(fieldOwner):
			ours = entry.Time.Time
		case !entry.Time.Time.Before(at):
			manager, at = entry.Manager, entry.Time.Time
		}
	}
	if at.Before(ours) {
		return "", time.Time{}
	}
	return manager, at
}

// remaining returns how long the conflict lasts without another write; zero when there is no conflict.
func (c *writeConflict) remaining(now time.Time) time.Duration {
	if c.otherManager(now) == "" {
		return 0
	}
	return max(c.lastFound.Add(conflictGrace).Sub(now), 0) + time.Second
}

// otherManager returns the field manager of the other controller; empty when there is no conflict.
func (c *writeConflict) otherManager(now time.Time) string {
	if since := now.Sub(c.lastFound); since > conflictGrace || since < -conflictGrace {
		*c = writeConflict{lastWrite: c.lastWrite}
	}
	if c.count < conflictWrites {
		return ""
	}
	return c.manager
}

// TransformManagedFields is the cache transform for the controller of Setup: of managed fields, it keeps only who wrote the status of a HealthScope, and when.
func TransformManagedFields(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	var kept []metav1.ManagedFieldsEntry
	if _, ok := object.(*corev1alpha2.HealthScope); ok {
		for _, entry := range o.GetManagedFields() {
			if entry.Subresource == statusSubresource {
				kept = append(kept, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time, Subresource: entry.Subresource})
			}
		}
	}
	o.SetManagedFields(kept)
	return object, nil
}
