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

// inventoryGrace is how long the condition InventorySynced must have had a reason before an event tells of it: a resource
// that has just come waits for its first write, and an A&AI that is restarted is away for a moment. Neither is news.
const inventoryGrace = 10 * time.Second

// inventoryNews is what has been told of the condition InventorySynced, and what is to be told.
type inventoryNews struct {
	// told is the reason that was told last; empty when all was well.
	told string
	// next is a reason that is not told yet, and since when the condition has had it.
	next  string
	since time.Time
}

// inventoryToldBefore returns what has been told of a scope by its status, which is all that there is after a restart.
func inventoryToldBefore(scope *corev1alpha2.HealthScope, now time.Time) inventoryNews {
	c := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionInventorySynced)
	if c == nil || c.Status != metav1.ConditionFalse || now.Sub(c.LastTransitionTime.Time) < inventoryGrace {
		return inventoryNews{}
	}
	return inventoryNews{told: c.Reason}
}

// update takes in the reason why the condition is False, which is empty when it is True. tell is true when there is something to tell, and wait is how long it is until there may be.
func (n *inventoryNews) update(reason string, now time.Time) (tell bool, wait time.Duration) {
	if reason == n.told {
		n.next = ""
		return false, 0
	}
	if reason == "" {
		*n = inventoryNews{}
		return true, 0
	}
	if reason != n.next {
		n.next, n.since = reason, now
	}
	if wait := n.since.Add(inventoryGrace).Sub(now); wait > 0 {
		return false, min(wait, inventoryGrace)
	}
	*n = inventoryNews{told: reason}
	return true, 0
}

// tellInventory makes an event and a log line when the condition InventorySynced has another reason than the one told
// last. It returns when to ask again, if the reason is too new; zero means when something changes.
func (r *reconciler) tellInventory(ctx context.Context, e *entry, scope *corev1alpha2.HealthScope, now time.Time) time.Duration {
	c := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionInventorySynced)
	if c == nil {
		e.inventory = inventoryNews{}
		return 0
	}
	before, reason, kind := e.inventory.told, "", corev1.EventTypeNormal
	if c.Status == metav1.ConditionFalse {
		reason, kind = c.Reason, corev1.EventTypeWarning
	}
	if reason != "" && underMaintenance(scope) {
		return 0
	}
	tell, wait := e.inventory.update(reason, now)
	if tell {
		r.recorder.Eventf(scope, nil, kind, c.Reason, corev1alpha2.ConditionInventorySynced, "%s is %s: %s", c.Type, c.Status, c.Message)
		log.FromContext(ctx).Info("Inventory changed", "from", before, "to", reason, "message", c.Message)
	}
	return wait
}
