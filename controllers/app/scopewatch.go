package app

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/observe"
)

// scopeWatchTolerances are the tolerances for the watch of scopes. Every watch ends from time to time, and is resumed within a second.
var scopeWatchTolerances = observe.Rules{Grace: 5 * time.Second, CatchUp: 500 * time.Millisecond}

// newScopeTracker returns a tracker that reports whether the cache of scopes is current. trackScopes must create its informer.
func newScopeTracker() *observe.Tracker {
	return observe.NewTracker(scopeWatchTolerances, clock.RealClock{}, nil)
}

// trackScopes returns a cache.Options.NewInformer that reports to tracker the state of the watch of HealthScopes.
func trackScopes(tracker *observe.Tracker) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := object.(*corev1alpha2.HealthScope); ok {
			lw = observe.NewTracked(lw, observe.TrackedOptions{
				Tracker: tracker, Clock: clock.RealClock{},
				Describe: func(_ observe.Reason, err error) string { return err.Error() },
			})
		}
		return toolscache.NewSharedIndexInformer(lw, object, resync, indexers)
	}
}
