package app

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/observe"
)

// scopeRules are what is tolerated of the watch of scopes. Every watch ends now and then, and is resumed within a second.
var scopeRules = observe.Rules{Grace: 5 * time.Second, Settle: 500 * time.Millisecond}

// newScopeTracker returns what tells whether the cache of scopes is current, once its informer was made by trackScopes.
func newScopeTracker() *observe.Tracker {
	return observe.NewTracker(scopeRules, clock.RealClock{}, nil)
}

// trackScopes returns, for cache.Options, what makes informers as usual and reports to scopes what happens to that of HealthScopes.
func trackScopes(scopes *observe.Tracker) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := object.(*corev1alpha2.HealthScope); ok {
			lw = observe.NewTracked(lw, observe.TrackedOptions{
				Tracker: scopes, Clock: clock.RealClock{},
				Describe: func(_ observe.Reason, err error) string { return err.Error() },
			})
		}
		return toolscache.NewSharedIndexInformer(lw, object, resync, indexers)
	}
}
