package scope

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// startGrace is the time after its creation in which an unhealthy scope has no event, because its application is being deployed.
const startGrace = time.Minute

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
