package scope

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes,verbs=list;watch
// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=healthscope-system,resources=events,verbs=create;patch

// The fields that scopes are indexed by in the cache.
const (
	// indexRefs has group/Kind/name of every object a scope refers to.
	indexRefs = "healthscope.refs"
	// indexKinds has group/Kind of every kind a scope refers to.
	indexKinds = "healthscope.kinds"
	// indexSelects has indexTrue for scopes that select bundles.
	indexSelects = "healthscope.selects"
	indexTrue    = "true"
)

// concurrency is the number of scopes that are judged at once; the work is short and mostly writing.
const concurrency = 4

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
	// InventoryChanged calls a function for every scope for which the inventory's answer has changed; nil when there is no inventory.
	InventoryChanged func(func(types.NamespacedName))
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// Clock tells the time. The default is the machine's.
	Clock clock.PassiveClock
}

// probeTimeout is the deadline of finding out whether scopes can be read.
const probeTimeout = 30 * time.Second

// Setup adds the HealthScope controller to a manager. It fails when scopes
// cannot be read, for want of their CRD or of rights: a controller that waits for them in silence helps nobody.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := mgr.GetAPIReader().List(probe, &corev1alpha2.HealthScopeList{}, client.Limit(1)); err != nil {
		return errors.Wrap(err, "cannot list HealthScopes")
	}
	r := &reconciler{
		client: mgr.GetClient(), view: o.View, objects: o.Objects, registry: o.Registry, inventory: o.Inventory,
		recorder: mgr.GetEventRecorder("healthscope-controller"), policy: o.Policy, clock: o.Clock,
	}
	changes := &sources{reader: mgr.GetClient(), indexer: mgr.GetFieldIndexer(), options: o}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("healthscope").
		For(&corev1alpha2.HealthScope{}).
		WatchesRawSource(source.Func(changes.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
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
		indexSelects: func(s *corev1alpha2.HealthScope) []string {
			if slices.ContainsFunc(s.Spec.Apps, func(a corev1alpha2.ScopeApp) bool { return a.Selector != nil }) {
				return []string{indexTrue}
			}
			return nil
		},
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

func kindKey(gk schema.GroupKind) string             { return gk.Group + "/" + gk.Kind }
func refKey(gk schema.GroupKind, name string) string { return kindKey(gk) + "/" + name }

// sources turn changes of what scopes look at into requests for the scopes.
type sources struct {
	reader  client.Reader
	indexer client.FieldIndexer
	options Options
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
	s.bundles(ctx, q)
	s.objects(ctx, q)
	if s.options.InventoryChanged != nil {
		s.options.InventoryChanged(func(name types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: name}) })
	}
	return nil
}

// bundles asks for the scopes of every bundle that changes. Subscribers must not block, so the changes wait in a queue of their own.
func (s *sources) bundles(ctx context.Context, q queue) {
	changes := newMailbox[fleet.Change]()
	cancel := s.options.View.Subscribe(changes.put)
	go func() {
		defer cancel()
		changes.deliver(ctx, func(c fleet.Change) {
			for _, b := range []*fleet.Bundle{c.Old, c.New} {
				if b != nil {
					s.bundleChanged(ctx, q, b)
				}
			}
		})
	}()
}

func (s *sources) bundleChanged(ctx context.Context, q queue, b *fleet.Bundle) {
	gk := schema.GroupKind{Group: k8spluginv1alpha1.GroupVersion.Group, Kind: k8spluginv1alpha1.ResourceBundleStateKind}
	s.enqueue(ctx, q, b.Namespace, indexRefs, refKey(gk, b.Name), nil)
	s.enqueue(ctx, q, b.Namespace, indexSelects, indexTrue, func(scope *corev1alpha2.HealthScope) bool { return selects(scope, b.Labels) })
	for key, value := range b.Labels {
		name, ok := strings.CutPrefix(key, corev1alpha2.LabelScopePrefix)
		switch {
		case key == corev1alpha2.LabelScopeName:
			q.Add(request(b.Namespace, value))
		case ok && value == "true":
			q.Add(request(b.Namespace, name))
		}
	}
}

// objects asks for the scopes of every object, or whole kind, that changes.
func (s *sources) objects(ctx context.Context, q queue) {
	type change struct {
		gvk  schema.GroupVersionKind
		name types.NamespacedName
	}
	changes := newMailbox[change]()
	s.options.Objects.Start(ctx, func(gvk schema.GroupVersionKind, name types.NamespacedName) { changes.put(change{gvk, name}) })
	go changes.deliver(ctx, func(c change) {
		if c.name.Name == "" {
			s.enqueue(ctx, q, "", indexKinds, kindKey(c.gvk.GroupKind()), nil)
			return
		}
		s.enqueue(ctx, q, c.name.Namespace, indexRefs, refKey(c.gvk.GroupKind(), c.name.Name), nil)
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
