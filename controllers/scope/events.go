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

// startGrace is for how long of its life a scope makes no event but of its first
// health: what is being deployed is not healthy yet, and that is no news.
const startGrace = time.Minute

// untilTold returns how long it is until an event may tell of the health of a
// scope of which nothing else has been told; zero means that it may now.
func untilTold(scope *corev1alpha2.HealthScope, now time.Time) time.Duration {
	if scope.Status.Health == corev1alpha2.Healthy {
		return 0
	}
	// A clock that is behind the API server's makes nobody wait for longer.
	return min(max(scope.CreationTimestamp.Add(startGrace).Sub(now), 0), startGrace)
}

// toldBefore returns what has been told of a scope by its status, which is all that there is after a restart.
func toldBefore(scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.Health {
	if untilTold(scope, now) > 0 {
		return ""
	}
	return scope.Status.Health
}

// underMaintenance says whether nobody is to be alarmed by a scope for now.
func underMaintenance(scope *corev1alpha2.HealthScope) bool {
	return scope.Annotations[corev1alpha2.AnnotationMaintenance] != ""
}

// silenced says whether a scope is under maintenance, or all that ails it is in clusters that are.
func silenced(scope *corev1alpha2.HealthScope, v verdict, state func(string) (fleet.ClusterState, bool)) bool {
	if underMaintenance(scope) {
		return true
	}
	ailing := map[string]bool{}
	for _, p := range v.members {
		if p.ails() {
			ailing[p.Cluster] = true
		}
	}
	for _, u := range v.unlisted {
		if u.Summary.Healthy < u.Summary.Total {
			ailing[u.Cluster] = true
		}
	}
	for cluster := range ailing {
		if s, known := state(cluster); !known || s.Maintenance == "" {
			return false
		}
	}
	return len(ailing) > 0 && len(v.absent) == 0
}

// tell makes an event and a log line when the health of a scope is another than
// the one told last; quiet keeps back what would alarm. It returns when to ask again, if it is too early for the first one; zero means when something changes.
func (r *reconciler) tell(ctx context.Context, e *entry, scope *corev1alpha2.HealthScope, quiet bool, now time.Time) time.Duration {
	healthy := scope.Status.Health == corev1alpha2.Healthy
	if e.resumed && quiet && !healthy {
		e.told = "" // It may have been kept back before the restart: a second warning is better than none.
	}
	e.resumed = e.resumed && !quiet && !healthy
	if e.told == scope.Status.Health {
		return 0
	}
	if wait := untilTold(scope, now); wait > 0 && e.told == "" {
		return wait
	}
	event := Events[scope.Status.Health]
	if event.Type == corev1.EventTypeWarning && quiet {
		return 0 // It is told when the maintenance is over, if it is still so.
	}
	var note string
	if ready := meta.FindStatusCondition(scope.Status.Conditions, corev1alpha2.ConditionReady); ready != nil {
		note = ready.Message
	}
	r.recorder.Eventf(scope, nil, event.Type, string(event.Reason), "Judge", "%s", note)
	log.FromContext(ctx).Info("Health changed", "from", e.told, "to", scope.Status.Health, "firstCulprit", scope.Status.FirstCulprit)
	e.told, e.resumed = scope.Status.Health, false
	return 0
}
