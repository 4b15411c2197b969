package app

import (
	"cmp"
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

// cachedScopes reads scopes from a manager's cache and notifies subscribers of their changes. It implements api.Scopes.
type cachedScopes struct {
	reader    client.Reader
	informers cache.Informers
	view      *fleet.View
	tracker   *observe.Tracker

	subscribers subscribers[func(namespace, name string)]
}

// current returns an api.OutageError while the cache may be stale. It serves as api.Options.Current.
func (c *cachedScopes) current() error {
	if state, outage := c.view.Outage(); outage {
		return &api.OutageError{Reason: state.Reachability.Reason(), Message: state.Problem(), LastSeen: state.LastSeen}
	}
	switch state, _ := c.tracker.State(); {
	case state.Status != observe.Ready && state.AsOf.IsZero():
		return &api.OutageError{Reason: healthscope.ReasonNotSynced, Message: "HealthScopes have not been read yet: " + cmp.Or(state.Message, "the API server has not answered")}
	case state.Status == observe.Problem:
		return &api.OutageError{Reason: healthscope.ReasonNotSynced, Message: "HealthScopes cannot be watched: " + state.Message, LastSeen: state.AsOf}
	}
	return nil
}

// Get implements api.Scopes.
func (c *cachedScopes) Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	var s corev1alpha2.HealthScope
	if err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// List implements api.Scopes.
func (c *cachedScopes) List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	var list corev1alpha2.HealthScopeList
	if err := c.reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Subscribe implements api.Scopes.
func (c *cachedScopes) Subscribe(changed func(namespace, name string)) (cancel func()) {
	return c.subscribers.add(changed)
}

// watch notifies subscribers until ctx ends. It creates the informer, which retries, because a manager does not start before the
// informers that it already has are synced.
func (c *cachedScopes) watch(ctx context.Context) error {
	informer, err := c.informers.GetInformer(ctx, &corev1alpha2.HealthScope{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: c.notify, UpdateFunc: func(_, now any) { c.notify(now) }, DeleteFunc: c.notify})
	}
	if err != nil {
		return errors.Wrap(err, "cannot watch HealthScopes")
	}
	<-ctx.Done()
	return nil
}

// notify notifies subscribers of a scope that was added, changed or deleted.
func (c *cachedScopes) notify(object any) {
	name, err := toolscache.DeletionHandlingObjectToName(object)
	if err != nil {
		return // Informers pass objects only.
	}
	for _, changed := range c.subscribers.list() {
		changed(name.Namespace, name.Name)
	}
}

// scopeWatchTolerances are the tolerances for the watch of scopes. Every watch ends from time to time, and is resumed within a second.
var scopeWatchTolerances = observe.Rules{Grace: 5 * time.Second, CatchUp: 500 * time.Millisecond}

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
