package scope

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/healthscope"
)

// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes,verbs=list;watch
// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=get;update,resourceNames=healthscope-controller

// The fields that scopes are indexed by in the cache.
const (
	// indexRefs has group/Kind/name of every object a scope refers to.
	indexRefs = "healthscope.refs"
	// indexKinds has group/Kind of every kind a scope refers to.
	indexKinds = "healthscope.kinds"
	// indexClusters has the name of every cluster that a scope speaks of.
	indexClusters = "healthscope.clusters"
	// indexSelects has key=value of a label that a bundle must have for a selector of the scope to match, and indexAny for selectors that ask for no one label.
	indexSelects = "healthscope.selects"
	indexAny     = "*"
)

// concurrency is the number of scopes that are judged at once; the work is short and mostly writing.
const concurrency = 4

// minPause and maxPause bound the time until a scope is judged again after an error, such as a status that cannot be
// written. An API server that is away for long must not cost more than maxPause once it is back.
const (
	minPause = 50 * time.Millisecond
	maxPause = 30 * time.Second
)

// pauses returns for how long scopes wait after errors.
func pauses() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minPause, maxPause)
}

// Options configure Setup.
type Options struct {
	// View holds the bundles of all clusters.
	View *fleet.View
	// Objects watches what scopes refer to directly.
	Objects *fleet.Objects
	// Registry receives the judgements.
	Registry *Registry
	// Inventory tells how far the inventory is; nil when there is none.
	Inventory Inventory
	// InventoryChanged calls a function for every scope for which the inventory's answer may have changed; nil when there is no inventory.
	InventoryChanged func(func(types.NamespacedName))
	// HealthChecks tells what is wrong with the health checks of the configuration; nil when nothing can be.
	HealthChecks HealthChecks
	// Contexts tells what the AppContexts of bundles require; nil when there are none.
	Contexts Contexts
	// Guard notices when the API server prunes what is written, and tells by its Ready. The default is one that nobody asks.
	Guard *pruning.Guard
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// Spans makes spans of reconciles. Nil means that there are none.
	Spans trace.TracerProvider
	// Clock tells the time. The default is the machine's.
	Clock clock.PassiveClock
}

// probeTimeout is the deadline of finding out whether scopes can be read. An API
// server that takes 10 seconds for an answer needs 40: how they are served is asked for first.
const probeTimeout = 2 * time.Minute

// CheckReadable reports, as an error, why HealthScopes cannot be read.
func CheckReadable(ctx context.Context, reader client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return errors.Wrap(reader.List(ctx, &corev1alpha2.HealthScopeList{}, client.Limit(1)), "cannot list HealthScopes")
}

// IsUnreadable reports whether an error of CheckReadable says that the CRD or the right to read HealthScopes is missing,
// which waiting does not mend.
func IsUnreadable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// Setup adds the HealthScope controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Guard == nil {
		o.Guard = pruning.NewGuard("the HealthScopes")
	}
	changes := &sources{reader: mgr.GetClient(), indexer: mgr.GetFieldIndexer(), options: o}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), view: o.View, objects: o.Objects, causes: newCauses(o.Objects.Cause), registry: o.Registry, inventory: o.Inventory, checks: o.HealthChecks, contexts: o.Contexts,
		recorder: mgr.GetEventRecorder("healthscope-controller"), policy: o.Policy, clock: o.Clock,
		guard: o.Guard, wake: changes.all,
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("healthscope").
		For(&corev1alpha2.HealthScope{}).
		WatchesRawSource(source.Func(changes.start)).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(changes.linkedScopes), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: pauses()}).
		Complete(tracing.Reconciler(o.Spans, "healthscope", tracing.Object, r))
	return errors.Wrap(err, "cannot set up the HealthScope controller")
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(*corev1alpha2.HealthScope) []string{
		indexRefs: func(s *corev1alpha2.HealthScope) []string {
			return indexed(s, refKey)
		},
		indexKinds: func(s *corev1alpha2.HealthScope) []string {
			return indexed(s, func(gk schema.GroupKind, _ string) string { return kindKey(gk) })
		},
		indexSelects:  selectedBy,
		indexClusters: clustersNamed,
	}
	for field, values := range indexes {
		err := indexer.IndexField(ctx, &corev1alpha2.HealthScope{}, field, func(o client.Object) []string {
			s, ok := o.(*corev1alpha2.HealthScope)
			if !ok {
				return nil
			}
			return values(s)
		})
		if err != nil {
			return errors.Wrapf(err, "cannot index HealthScopes by %q", field)
		}
	}
	return nil
}

// indexed returns one value for each kind and name that a scope refers to.
func indexed(s *corev1alpha2.HealthScope, value func(schema.GroupKind, string) string) []string {
	values := map[string]struct{}{}
	for _, app := range appsOf(&s.Spec) {
		for _, ref := range app.refs {
			if gvk, problem := parseRef(s.Namespace, ref); problem == nil {
				values[value(gvk.GroupKind(), ref.Name)] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// selectedBy returns a value for each selector of a scope, under which the bundles that it may match are found.
func selectedBy(s *corev1alpha2.HealthScope) []string {
	values := map[string]struct{}{}
	for _, app := range s.Spec.Apps {
		selector, err := metav1.LabelSelectorAsSelector(app.Selector)
		if app.Selector == nil || err != nil {
			continue
		}
		if key, value, ok := fleet.RequiredLabel(selector); ok {
			values[labelKey(key, value)] = struct{}{}
		} else {
			values[indexAny] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

func labelKey(key, value string) string              { return key + "=" + value }
func kindKey(gk schema.GroupKind) string             { return gk.Group + "/" + gk.Kind }
func refKey(gk schema.GroupKind, name string) string { return kindKey(gk) + "/" + name }

// sources turn changes of what scopes look at into requests for the scopes.
type sources struct {
	reader  client.Reader
	indexer client.FieldIndexer
	options Options
	// queue is there once the controller has started.
	queue queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// start is the source of all requests that do not come from a scope itself.
//
// The indexes are made here and not in Setup because the manager starts with the
// caches that are there by then, and does not stop any more before they have been read.
func (s *sources) start(ctx context.Context, q queue) error {
	if err := addIndexes(ctx, s.indexer); err != nil {
		return err
	}
	s.queue = q
	s.view(ctx, q)
	s.objects(ctx, q)
	if s.options.InventoryChanged != nil {
		s.options.InventoryChanged(func(name types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: name}) })
	}
	if s.options.Contexts != nil {
		s.contexts(ctx, q)
	}
	if s.options.HealthChecks != nil {
		s.options.HealthChecks.Subscribe(func() { s.all(ctx) })
	}
	return nil
}

// view asks for the scopes of every bundle that changes, and for those that speak of a cluster when what is known of the
// cluster itself changes. Scopes that its bundles belong to are asked for when these change; but when it comes into sight
// for the first time, all are: others wait for it to be known that they have nothing to do with it.
func (s *sources) view(ctx context.Context, q queue) {
	changes, cancel := s.options.View.Subscribe(fleet.Bundles | fleet.Clusters)
	go func() {
		defer cancel()
		changes.Deliver(ctx, func(c fleet.Change) { s.viewChanged(ctx, q, c) })
	}()
}

func (s *sources) viewChanged(ctx context.Context, q queue, c fleet.Change) {
	switch c := c.(type) {
	case fleet.BundleChange:
		s.bundleChanged(ctx, q, &fleet.Bundle{BundleKey: c.BundleKey, Labels: c.Labels.Map()})
	case fleet.ClusterChange:
		s.enqueue(ctx, q, "", indexClusters, c.Cluster, nil)
	case fleet.SelectionChange, fleet.CompleteChange: // Any scope may select clusters by labels.
		s.all(ctx)
	}
}

// contexts asks for the scopes of every bundle whose context requires something else: those that refer to it, also where
// there is none, and those that it belongs to.
func (s *sources) contexts(ctx context.Context, q queue) {
	changes := newMailbox[types.NamespacedName]()
	s.options.Contexts.Subscribe(changes.put)
	go changes.deliver(ctx, func(name types.NamespacedName) {
		s.enqueue(ctx, q, name.Namespace, indexRefs, refKey(bundleKind, name.Name), nil)
		for _, b := range s.options.View.Named(name.Namespace, name.Name) {
			s.bundleChanged(ctx, q, b)
		}
	})
}

func (s *sources) bundleChanged(ctx context.Context, q queue, b *fleet.Bundle) {
	s.enqueue(ctx, q, b.Namespace, indexRefs, refKey(bundleKind, b.Name), nil)
	matches := func(scope *corev1alpha2.HealthScope) bool { return selects(scope, b.Labels) }
	s.enqueue(ctx, q, b.Namespace, indexSelects, indexAny, matches)
	for key, value := range b.Labels {
		s.enqueue(ctx, q, b.Namespace, indexSelects, labelKey(key, value), matches)
		name, ok := strings.CutPrefix(key, corev1alpha2.LabelScopePrefix)
		switch {
		case key == corev1alpha2.LabelScopeName:
			q.Add(request(b.Namespace, value))
		case ok && value == "true":
			q.Add(request(b.Namespace, name))
		}
	}
}

// all asks for all scopes.
func (s *sources) all(ctx context.Context) {
	var list corev1alpha2.HealthScopeList
	if err := s.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the scopes")
		return
	}
	for i := range list.Items {
		s.queue.Add(request(list.Items[i].Namespace, list.Items[i].Name))
	}
}

// objects asks for the scopes of every object, or whole kind, that changes.
func (s *sources) objects(ctx context.Context, q queue) {
	changes := s.options.Objects.Start(ctx)
	go changes.Deliver(ctx, func(c fleet.Change) {
		switch c := c.(type) {
		case fleet.KindChange:
			s.enqueue(ctx, q, "", indexKinds, kindKey(c.GroupKind()), nil)
		case fleet.ObjectChange:
			s.enqueue(ctx, q, c.Name.Namespace, indexRefs, refKey(c.GroupKind(), c.Name.Name), nil)
		}
	})
}

// enqueue asks for the scopes of a namespace, or of all, that an index finds and that match, when there is something to match.
func (s *sources) enqueue(ctx context.Context, q queue, namespace, index, value string, match func(*corev1alpha2.HealthScope) bool) {
	var list corev1alpha2.HealthScopeList
	err := s.reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the scopes of a change", "index", index, "value", value)
		return
	}
	for i := range list.Items {
		if match == nil || match(&list.Items[i]) {
			q.Add(request(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
}

// selects says whether a selector of a scope matches a bundle's labels.
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
