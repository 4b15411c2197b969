package scope

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// startGrace is the time after its creation in which an unhealthy scope has no event, because its application is being deployed.
const startGrace = time.Minute

// inventoryGrace is how long the condition InventorySynced must have had a reason before an event is recorded: a new resource
// waits for its first write, and A&AI is unavailable for a moment while it restarts.
const inventoryGrace = 10 * time.Second

// recordHealth records an event and writes a log line when the health of a scope differs from the one recorded last. While
// the scope is muted, it records no warning. It returns when to call it again if it is too early for the first event; zero
// means when something changes.
func (r *reconciler) recordHealth(ctx context.Context, e *scopeEntry, scope *corev1alpha2.HealthScope, muted bool, now time.Time) time.Duration {
	healthy := scope.Status.Health == corev1alpha2.Healthy
	if e.recordedFromStatus && muted && !healthy {
		e.recorded = "" // The warning may have been held back before the restart: a second one is better than none.
	}
	e.recordedFromStatus = e.recordedFromStatus && !muted && !healthy
	if e.recorded == scope.Status.Health {
		return 0
	}
	if wait := startGraceLeft(scope, now); wait > 0 && e.recorded == "" {
		return wait
	}
	event := Events[scope.Status.Health]
	if event.Type == corev1.EventTypeWarning && muted {
		return 0 // It is recorded when the maintenance is over, if the scope is still not healthy.
	}
	var note string
	if ready := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionReady); ready != nil {
		note = ready.Message
	}
	r.recorder.Eventf(scope, nil, event.Type, string(event.Reason), "Judge", "%s", note)
	log.FromContext(ctx).Info("Health changed", "from", e.recorded, "to", scope.Status.Health, "firstCulprit", scope.Status.FirstCulprit)
	e.recorded, e.recordedFromStatus = scope.Status.Health, false
	return 0
}

// startGraceLeft returns how long it is until the first event on the health of a scope; zero means that it may be recorded now.
func startGraceLeft(scope *corev1alpha2.HealthScope, now time.Time) time.Duration {
	if scope.Status.Health == corev1alpha2.Healthy {
		return 0
	}
	// A clock that is behind the API server's does not lengthen the grace.
	return min(max(scope.CreationTimestamp.Add(startGrace).Sub(now), 0), startGrace)
}

func recordedHealth(scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.Health {
	if startGraceLeft(scope, now) > 0 {
		return ""
	}
	return scope.Status.Health
}

// isMuted reports whether a scope is under maintenance, or all its unhealthy contributors are in clusters that are.
func isMuted(scope *corev1alpha2.HealthScope, v judgement, state func(string) (fleet.ClusterState, bool)) bool {
	if underMaintenance(scope) {
		return true
	}
	unhealthy := false
	for at, n := range v.counts {
		if n.Healthy == n.Total {
			continue
		}
		if s, known := state(at.cluster); !known || s.Maintenance == "" {
			return false
		}
		unhealthy = true
	}
	return unhealthy && len(v.missingRequired) == 0
}

func underMaintenance(scope *corev1alpha2.HealthScope) bool {
	return scope.Annotations[corev1alpha2.AnnotationMaintenance] != ""
}

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
