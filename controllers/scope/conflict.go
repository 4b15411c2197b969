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
	// conflictWrites is how often in a row another controller must have changed a status that was written here for it to be a conflict. Once or twice may be a person.
	conflictWrites = 3
	// conflictGrace is how long no other controller must have changed it for the conflict to be over.
	conflictGrace = 4 * pruning.Interval
)

// writeConflict records that another controller writes the status of a scope: each takes back what the other one wrote.
type writeConflict struct {
	// times is how often in a row a write of another controller was found, and last when the last one was.
	times int
	last  time.Time
	// manager is the other controller, as managed fields name it, and at when it wrote, by the API server's clock.
	manager string
	at      time.Time
	// wrote is when the status was written here last.
	wrote time.Time
}

// statusSubresource is the subresource that statuses are written to.
const statusSubresource = "status"

// noteConflict records that a status is about to be written, and makes an event and a log line when a conflict has begun.
func (r *reconciler) noteConflict(ctx context.Context, e *entry, before *corev1alpha2.HealthScope, now time.Time) {
	if !e.conflict.write(before.ManagedFields, now) {
		return
	}
	note := conflictNote(e.conflict.manager)
	r.recorder.Eventf(before, nil, corev1.EventTypeWarning, corev1alpha2.ConditionStatusConflict, "Judge", "%s", note)
	log.FromContext(ctx).Info("The status is also written by another controller", "manager", e.conflict.manager)
}

// conflictNote returns the message of a conflict; empty when there is none.
func conflictNote(manager string) string {
	if manager == "" {
		return ""
	}
	return fmt.Sprintf("%q writes the status too, and takes back what HealthScope's controller writes, which is now once in %s: turn off the HealthScope controller of oam-kubernetes-runtime or KubeVela", manager, pruning.Interval)
}

// wait returns how long to wait before a status is written over that of a scope; zero means that it may be written now.
// During a conflict, one write in pruning.Interval is enough to see whether it continues.
func (c *writeConflict) wait(now time.Time) time.Duration {
	if since := now.Sub(c.wrote); c.by(now) != "" && since >= 0 && since < pruning.Interval {
		return pruning.Interval - since
	}
	return 0
}

// write records that a status is about to be written over one with these managed fields, and reports whether a conflict has begun.
func (c *writeConflict) write(entries []metav1.ManagedFieldsEntry, now time.Time) (begun bool) {
	c.wrote = now
	manager, at := writtenSince(entries)
	if manager == "" || at.Equal(c.at) { // The status may have been written here more than once within the second of that write.
		return false
	}
	c.times, c.last, c.manager, c.at = c.times+1, now, manager, at
	return c.times == conflictWrites
}

// writtenSince returns who has written a status since it was written here, and when, by managed fields; empty when there
// was no such write. A write within the same second counts as a later one: managed fields hold whole seconds.
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

// over returns how long it is until the conflict is over if there is no other write; zero when there is none.
func (c *writeConflict) over(now time.Time) time.Duration {
	if c.by(now) == "" {
		return 0
	}
	return max(c.last.Add(conflictGrace).Sub(now), 0) + time.Second
}

// by returns which other controller writes the status; empty when there is no conflict.
func (c *writeConflict) by(now time.Time) string {
	if since := now.Sub(c.last); since > conflictGrace || since < -conflictGrace {
		*c = writeConflict{wrote: c.wrote}
	}
	if c.times < conflictWrites {
		return ""
	}
	return c.manager
}

// KeepWriters is the transformation of a cache that Setup's controller reads: of managed fields it keeps who wrote the status of a HealthScope, and when.
func KeepWriters(object any) (any, error) {
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

// settleConflict reports to the readiness check which other controller writes the status of a scope, and returns who that is; empty when there is no conflict.
func (r *reconciler) settleConflict(scope *corev1alpha2.HealthScope, e *entry, now time.Time) string {
	by := e.conflict.by(now)
	r.Guard.SetConflict(client.ObjectKeyFromObject(scope).String(), by)
	return by
}
