package scope

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// sources turn changes of what belongs to scopes into requests for the scopes.
type sources struct {
	reader  client.Reader
	indexer client.FieldIndexer
	options Options
	// followers are the scopes that look at what they do not refer to.
	followers *followers
	// queue is set once the controller has started.
	queue queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// String implements fmt.Stringer: controller-runtime logs it.
func (*sources) String() string { return "what belongs to scopes" }

// Start implements source.Source, of all requests that do not come from a scope itself.
//
// The indexes are added here and not in Setup because the manager first starts the
// caches that exist by then, and cannot be stopped before these have been read.
func (s *sources) Start(ctx context.Context, q queue) error {
	if err := addIndexes(ctx, s.indexer); err != nil {
		return err
	}
	s.queue = q
	s.view(ctx)
	s.objects(ctx)
	if s.options.Inventory != nil {
		s.options.Inventory.Subscribe(func(name types.NamespacedName) { s.queue.Add(reconcile.Request{NamespacedName: name}) })
	}
	if s.options.Probes != nil {
		s.options.Probes.Subscribe(func(name types.NamespacedName) { s.queue.Add(reconcile.Request{NamespacedName: name}) })
	}
	if s.options.Contexts != nil {
		s.contexts(ctx)
	}
	if s.options.HealthChecks != nil {
		s.options.HealthChecks.Subscribe(func() { s.all(ctx) })
	}
	return nil
}

// view enqueues the scopes of every bundle that changes, and those that name a cluster when the state of the cluster changes.
// Scopes that its bundles belong to are enqueued when these change. When a cluster is read for the first time, all scopes
// are: the inventory deletes nothing there before each scope has been judged with it.
func (s *sources) view(ctx context.Context) {
	changes, cancel := s.options.View.Subscribe(fleet.Bundles | fleet.Clusters)
	go func() {
		defer cancel()
		changes.Deliver(ctx, func(c fleet.Change) { s.viewChanged(ctx, c) })
	}()
}

func (s *sources) viewChanged(ctx context.Context, c fleet.Change) {
	switch c := c.(type) {
	case fleet.BundleChange:
		s.bundleChanged(ctx, c.Namespace, c.Name, c.Labels.Map())
	case fleet.ClusterChange:
		s.enqueue(ctx, "", indexClusters, c.Cluster, nil)
	case fleet.SelectionChange, fleet.CompleteChange: // Any scope may select clusters by labels.
		s.all(ctx)
	}
}

// contexts enqueues the scopes of every bundle whose context requires something else: those that refer to it, also where
// it does not exist, and those that it belongs to. It reads caches alone, and so does not block.
func (s *sources) contexts(ctx context.Context) {
	s.options.Contexts.Subscribe(func(name types.NamespacedName) {
		s.enqueue(ctx, name.Namespace, indexRefs, refKey(bundleKind, name.Name), nil)
		for _, b := range s.options.View.Named(name.Namespace, name.Name) {
			s.bundleChanged(ctx, b.Namespace, b.Name, b.Labels)
		}
	})
}

// bundleChanged enqueues the scopes that refer to a bundle, select it, or are named by its labels.
func (s *sources) bundleChanged(ctx context.Context, namespace, name string, set map[string]string) {
	s.enqueue(ctx, namespace, indexRefs, refKey(bundleKind, name), nil)
	matches := func(scope *corev1alpha2.HealthScope) bool { return selects(scope, set) }
	s.enqueue(ctx, namespace, indexSelects, indexAny, matches)
	for key, value := range set {
		s.enqueue(ctx, namespace, indexSelects, labelKey(key, value), matches)
	}
	for _, scope := range corev1alpha2.ScopesOf(set) {
		s.queue.Add(request(namespace, scope))
	}
}

// all enqueues all scopes.
func (s *sources) all(ctx context.Context) {
	for _, request := range s.list(ctx, nil) {
		s.queue.Add(request)
	}
}

// objects enqueues the scopes of every object, or whole kind, that changes.
func (s *sources) objects(ctx context.Context) {
	changes := s.options.Objects.Start(ctx)
	go changes.Deliver(ctx, func(c fleet.Change) {
		for _, scope := range s.followers.changed(c) {
			s.queue.Add(reconcile.Request{NamespacedName: scope})
		}
		switch c := c.(type) {
		case fleet.KindChange:
			s.enqueue(ctx, "", indexKinds, kindKey(c.GroupKind()), nil)
		case fleet.ObjectChange:
			s.objectChanged(ctx, c)
		}
	})
}

// objectChanged enqueues the scopes that refer to an object, or select it by its labels.
func (s *sources) objectChanged(ctx context.Context, c fleet.ObjectChange) {
	s.enqueue(ctx, c.Name.Namespace, indexRefs, refKey(c.GroupKind(), c.Name.Name), nil)
	matches := func(scope *corev1alpha2.HealthScope) bool { return selectsWorkload(scope, c.GroupKind(), c.Labels) }
	s.enqueue(ctx, c.Name.Namespace, indexWorkloads, indexAny, matches)
	for key, value := range c.Labels.All() {
		s.enqueue(ctx, c.Name.Namespace, indexWorkloads, labelKey(key, value), matches)
	}
}

// enqueue enqueues the scopes of a namespace, or of all, that an index finds and that match; nil matches all.
func (s *sources) enqueue(ctx context.Context, namespace, index, value string, match func(*corev1alpha2.HealthScope) bool) {
	for _, request := range s.list(ctx, match, client.InNamespace(namespace), client.MatchingFields{index: value}) {
		s.queue.Add(request)
	}
}

// list returns requests for the scopes that options find and that match; nil matches all.
func (s *sources) list(ctx context.Context, match func(*corev1alpha2.HealthScope) bool, options ...client.ListOption) []reconcile.Request {
	var list corev1alpha2.HealthScopeList
	if err := s.reader.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the HealthScopes of a change")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if match == nil || match(&list.Items[i]) {
			requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return requests
}

// selects reports whether a selector of a scope matches labels of a bundle.
func selects(scope *corev1alpha2.HealthScope, of map[string]string) bool {
	for _, app := range scope.Spec.Apps {
		if selector, err := metav1.LabelSelectorAsSelector(app.Selector); err == nil && app.Selector != nil && selector.Matches(labels.Set(of)) {
			return true
		}
	}
	return false
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
