package scope

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// String implements fmt.Stringer: controller-runtime logs it as the name of the source.
func (*reconciler) String() string { return "what belongs to scopes" }

// Start implements source.Source for all requests that do not come from a scope itself.
func (r *reconciler) Start(ctx context.Context, q queue) error {
	r.queue = q
	changes, cancel := r.View.Subscribe(fleet.Bundles | fleet.Clusters)
	objects := r.Objects.Start(ctx)
	changed := func(c fleet.Change) { r.handle(ctx, c) }
	go func() {
		defer cancel()
		changes.Deliver(ctx, changed)
	}()
	go objects.Deliver(ctx, changed)
	if r.Inventory != nil {
		r.Inventory.Subscribe(r.enqueue)
	}
	if r.Probes != nil {
		r.Probes.Subscribe(r.enqueue)
	}
	if r.Contexts != nil {
		r.Contexts.Subscribe(func(bundle types.NamespacedName) {
			changed(fleet.BundleChange{BundleKey: fleet.BundleKey{Namespace: bundle.Namespace, Name: bundle.Name}})
		})
	}
	if r.HealthChecks != nil {
		r.HealthChecks.Subscribe(func() { r.enqueueAll(ctx) })
	}
	return nil
}

// handle enqueues the scopes that a change affects. When a cluster is read for the first time, these are all scopes, because the
// inventory deletes nothing there before each scope has been judged with it.
func (r *reconciler) handle(ctx context.Context, c fleet.Change) {
	switch c.(type) {
	case fleet.SelectionChange, fleet.CompleteChange: // Any scope may select clusters by labels.
		r.enqueueAll(ctx)
	default:
		for _, scope := range r.dependencyIndex.affected(c) {
			r.enqueue(scope)
		}
	}
}

func (r *reconciler) enqueue(scope types.NamespacedName) {
	r.queue.Add(reconcile.Request{NamespacedName: scope})
}

func (r *reconciler) enqueueAll(ctx context.Context) {
	for _, request := range r.requests(ctx, nil) {
		r.queue.Add(request)
	}
}

// cycleCandidates returns requests for the scopes that may be in a cycle with a scope whose spec has changed: those of its
// namespace that refer to scopes, if it does itself.
func (r *reconciler) cycleCandidates(ctx context.Context, o client.Object) []reconcile.Request {
	refersToScopes := func(scope *corev1alpha2.HealthScope) bool { return len(scopeRefs(scope, r.View.Cluster())) > 0 }
	if changed, ok := o.(*corev1alpha2.HealthScope); !ok || !refersToScopes(changed) {
		return nil
	}
	return r.requests(ctx, refersToScopes, client.InNamespace(o.GetNamespace()))
}

// requests returns requests for the scopes that the options select and that match; a nil match selects all.
func (r *reconciler) requests(ctx context.Context, match func(*corev1alpha2.HealthScope) bool, options ...client.ListOption) []reconcile.Request {
	var list corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the HealthScopes of a change")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if match == nil || match(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
