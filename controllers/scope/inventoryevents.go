package scope

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// inventoryGrace is how long the condition InventorySynced must have had a reason before an event is recorded: a new resource
// waits for its first write, and A&AI is unavailable for a moment while it restarts.
const inventoryGrace = 10 * time.Second

// recordInventory records an event and writes a log line when the condition InventorySynced has another reason than the one
// recorded last. It returns when to call it again, if the reason is too new; zero means when something changes.
func (r *reconciler) recordInventory(ctx context.Context, e *scopeEntry, scope *corev1alpha2.HealthScope, now time.Time) time.Duration {
	c := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionInventorySynced)
	if c == nil {
		e.inventory = inventoryEvents{}
		return 0
	}
	before, reason, kind := e.inventory.recorded, "", corev1.EventTypeNormal
	if c.Status == metav1.ConditionFalse {
		reason, kind = c.Reason, corev1.EventTypeWarning
	}
	if reason != "" && underMaintenance(scope) {
		return 0
	}
	changed, wait := e.inventory.update(reason, now)
	if changed {
		r.recorder.Eventf(scope, nil, kind, c.Reason, corev1alpha2.ConditionInventorySynced, "%s is %s: %s", c.Type, c.Status, c.Message)
		log.FromContext(ctx).Info("Inventory changed", "from", before, "to", reason, "message", c.Message)
	}
	return wait
}

// inventoryEvents holds which reasons of the condition InventorySynced have an event.
type inventoryEvents struct {
	// recorded is the reason of the last event; empty when the condition was True.
	recorded string
	// pending is a reason that has no event yet, and since is when the condition got it.
	pending string
	since   time.Time
}

// recordedInventory returns what was recorded according to the scope's status, which is the only source after a restart.
func recordedInventory(scope *corev1alpha2.HealthScope, now time.Time) inventoryEvents {
	c := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionInventorySynced)
	if c == nil || c.Status != metav1.ConditionFalse || now.Sub(c.LastTransitionTime.Time) < inventoryGrace {
		return inventoryEvents{}
	}
	return inventoryEvents{recorded: c.Reason}
}

// update takes the reason for which the condition is False, which is empty when it is True. changed is true when an event is to be recorded, and wait is how long it is until there may be one.
func (e *inventoryEvents) update(reason string, now time.Time) (changed bool, wait time.Duration) {
	if reason == e.recorded {
		e.pending = ""
		return false, 0
	}
	if reason == "" {
		*e = inventoryEvents{}
		return true, 0
	}
	if reason != e.pending {
		e.pending, e.since = reason, now
	}
	if wait := e.since.Add(inventoryGrace).Sub(now); wait > 0 {
		return false, min(wait, inventoryGrace)
	}
	*e = inventoryEvents{recorded: reason}
	return true, 0
}
