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

// eventSource enqueues scopes when their dependencies change.
type eventSource struct {
	reader          client.Reader
	options         Options
	dependencyIndex *dependencyIndex
	// queue is set once the controller has started.
	queue queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// String implements fmt.Stringer: controller-runtime logs it.
func (*eventSource) String() string { return "what belongs to scopes" }

// Start implements source.Source for all requests that do not come from a scope itself.
func (s *eventSource) Start(ctx context.Context, q queue) error {
	s.queue = q
	changes, cancel := s.options.View.Subscribe(fleet.Bundles | fleet.Clusters)
	objects := s.options.Objects.Start(ctx)
	changed := func(c fleet.Change) { s.handle(ctx, c) }
	go func() {
		defer cancel()
		changes.Deliver(ctx, changed)
	}()
	go objects.Deliver(ctx, changed)
	if s.options.Inventory != nil {
		s.options.Inventory.Subscribe(s.enqueue)
	}
	if s.options.Probes != nil {
		s.options.Probes.Subscribe(s.enqueue)
	}
	if s.options.Contexts != nil {
		s.options.Contexts.Subscribe(func(bundle types.NamespacedName) {
			changed(fleet.BundleChange{BundleKey: fleet.BundleKey{Namespace: bundle.Namespace, Name: bundle.Name}})
		})
	}
	if s.options.HealthChecks != nil {
		s.options.HealthChecks.Subscribe(func() { s.enqueueAll(ctx) })
	}
	return nil
}

// handle enqueues the scopes that a change affects. When a cluster is read for the first time, these are all scopes, because the
// inventory deletes nothing there before each scope has been judged with it.
func (s *eventSource) handle(ctx context.Context, c fleet.Change) {
	switch c.(type) {
	case fleet.SelectionChange, fleet.CompleteChange: // Any scope may select clusters by labels.
		s.enqueueAll(ctx)
	default:
		for _, scope := range s.dependencyIndex.affected(c) {
			s.enqueue(scope)
		}
	}
}

func (s *eventSource) enqueue(scope types.NamespacedName) {
	s.queue.Add(reconcile.Request{NamespacedName: scope})
}

func (s *eventSource) enqueueAll(ctx context.Context) {
	for _, request := range s.requests(ctx, nil) {
		s.queue.Add(request)
	}
}

// cycleCandidates returns requests for the scopes that may be in a cycle with a scope whose spec has changed: those of its
// namespace that refer to scopes, if it does itself.
func (s *eventSource) cycleCandidates(ctx context.Context, o client.Object) []reconcile.Request {
	refersToScopes := func(scope *corev1alpha2.HealthScope) bool { return len(scopeRefs(scope, s.options.View.Cluster())) > 0 }
	if changed, ok := o.(*corev1alpha2.HealthScope); !ok || !refersToScopes(changed) {
		return nil
	}
	return s.requests(ctx, refersToScopes, client.InNamespace(o.GetNamespace()))
}

// requests returns requests for the scopes that the options select and that match; a nil match selects all.
func (s *eventSource) requests(ctx context.Context, match func(*corev1alpha2.HealthScope) bool, options ...client.ListOption) []reconcile.Request {
	var list corev1alpha2.HealthScopeList
	if err := s.reader.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
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
