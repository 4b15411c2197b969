package monitor

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// What a monitor of the default kinds does, and its Lease. What its options need further is in the packages below rights.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,resourceNames=healthscope-monitor,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=healthscope-system,resources=events,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=list;watch;patch
// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates/status,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;services;configmaps;persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;daemonsets;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list;watch

const (
	// controllerName names the controller in logs and metrics, largeControllerName
	// that of large bundles, and creatorName that which makes bundles.
	controllerName, largeControllerName, creatorName = "monitor", "monitor-large", "monitor-creator"
	// workers is the number of small bundles that are reconciled concurrently. More would not be faster: an API server needs some
	// milliseconds of CPU for a write, and the changes of a bundle that waits go into one write. Large bundles, which take long to build
	// and to write, have their own worker, so that no small bundle waits for them.
	workers, largeWorkers = 3, 1
)

// ManagerOptions returns the options of a manager for Setup: a scheme with the bundles, a cache of the options' namespaces, and leader
// election with the monitor's Lease, which is released when the manager stops (the process must then exit). The caller adds addresses,
// logger and probes.
func ManagerOptions(opts Options) (ctrl.Options, error) {
	opts = opts.complete()
	scheme := runtime.NewScheme()
	if err := k8spluginv1alpha1.AddToScheme(scheme); err != nil {
		return ctrl.Options{}, fmt.Errorf("cannot register types: %w", err)
	}
	namespaces := map[string]cache.Config{}
	for _, namespace := range opts.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	renewDeadline, retryPeriod := opts.LeaseDuration*2/3, opts.LeaseDuration/5
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			DefaultTransform:  compress,
		},
		LeaderElection:                true,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       opts.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &opts.LeaseDuration,
		RenewDeadline:                 &renewDeadline,
		RetryPeriod:                   &retryPeriod,
	}, nil
}

// Setup adds a monitor to a manager that was created with ManagerOptions. The manager's configuration should have no client-side rate limit
// (QPS -1), because the monitor limits its writes per bundle. Setup adds the readiness check "bundles", which fails while the cluster's CRD
// prunes what the monitor writes.
//
// The manager ends with an error when the cluster does not serve ResourceBundleStates.
func Setup(mgr ctrl.Manager, opts Options) error {
	if err := setup(mgr, opts.complete()); err != nil {
		return fmt.Errorf("cannot set up monitor: %w", err)
	}
	return nil
}

func setup(mgr ctrl.Manager, opts Options) error {
	writeStates := newWriteStates()
	all, err := newWatches(mgr, opts, writeStates)
	if err != nil {
		return err
	}
	metrics := newCollector(all, writeStates, opts.Registerer)
	for _, r := range []manager.RunnableFunc{all.run, metrics.run} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	if opts.CreateBundles != "" {
		if err := addCreation(mgr, opts, all, metrics); err != nil {
			return err
		}
	}
	status, err := newStatusClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	guard := pruning.NewGuard("ResourceBundleStates")
	if err := mgr.AddReadyzCheck("bundles", func(*http.Request) error { return guard.Ready() }); err != nil {
		return err
	}
	r := reconciler{
		bundles: mgr.GetCache(), live: mgr.GetAPIReader(), status: status,
		gather: all.gather, reads: all.reads, wakeAll: all.wakeAll,
		writeStates: writeStates, guard: guard,
		recorder: mgr.GetEventRecorder(string(fieldOwner)), clock: opts.Clock,
		options: bundle.Options{AllowedLabels: opts.AllowedLabels, ListBudget: opts.ListBudget, HardLimit: opts.HardLimit, User: opts.Rules},
	}
	return addControllers(mgr, opts, all, r)
}

// addControllers adds the controller of small bundles, whose source is the
// watches, and the controller of large bundles, which receives them from the first.
func addControllers(mgr ctrl.Manager, opts Options, all *watches, small reconciler) error {
	large, handedOver := small, make(chan event.GenericEvent)
	small.large = handedOver
	err := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&k8spluginv1alpha1.ResourceBundleState{}).
		WatchesRawSource(all).
		WithOptions(controllerOptions(workers)).
		Complete(tracing.Reconciler(opts.Spans, controllerName, tracing.Object, &small))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(largeControllerName).
		WatchesRawSource(ctrlsource.Channel(handedOver, &handler.EnqueueRequestForObject{})).
		WithOptions(controllerOptions(largeWorkers)).
		Complete(tracing.Reconciler(opts.Spans, controllerName, tracing.Object, &large))
}

func controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		CacheSyncTimeout:        syncTimeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetryPause, maxRetryPause),
	}
}

// newWatches returns the watches of the options' kinds, with a kindDiscovery if kinds
// may be added or removed: if Discover is set, or if a kind is not built into Kubernetes.
func newWatches(mgr ctrl.Manager, opts Options, writeStates *writeStates) (*watches, error) {
	c, err := clientsOf(mgr)
	if err != nil {
		return nil, err
	}
	all := &watches{
		membership:     membership{keys: opts.LabelKeys, trusted: sets.New(opts.TrustedNamespaces...), bundles: mgr.GetCache()},
		indexer:        mgr.GetFieldIndexer(),
		writeStates:    writeStates,
		clock:          opts.WatchClock,
		logger:         mgr.GetLogger().WithName(controllerName),
		synced:         make(chan struct{}),
		onRulesChanged: opts.RulesChanged,
		sourceOf: func(p place) source {
			return source{place: p, trusted: len(opts.TrustedNamespaces) > 0, kinds: c.kinds, client: c.of(p.kind)}
		},
	}
	for _, kind := range opts.Kinds {
		for _, p := range placesOf(kind, opts) {
			all.places = append(all.places, p)
			all.add(p)
		}
	}
	if opts.Discover || !allBuiltIn(opts.Kinds) {
		var preferred func() ([]*metav1.APIResourceList, error)
		if opts.Discover {
			preferred = c.kinds.ServerPreferredResources
		}
		var definitions []*watch
		for _, kind := range definitionKinds() {
			definitions = append(definitions, newWatch(source{place: place{kind: kind}, trusted: true, kinds: c.kinds, client: c.bare}, all.clock, all.logger))
		}
		followKinds(all, opts, preferred, definitions...)
	}
	return all, nil
}

// addCreation adds the controller that creates bundles. It starts once all objects have been read and the cache has all bundles.
func addCreation(mgr ctrl.Manager, opts Options, all *watches, metrics *collector) error {
	c := newCreator(opts.CreateBundles, mgr.GetClient(), all.logger)
	c.bundles, c.isCarried, c.created = all.selecting, all.isCarried, metrics.created.Inc
	all.keysChanged = c.enqueue
	objects := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[selectorKey]) error {
		select {
		case <-all.synced:
		case <-ctx.Done():
			return nil
		}
		c.setQueue(q)
		for _, w := range all.snapshot() {
			c.enqueue(w.store.selectorKeys())
		}
		return nil
	}
	return builder.TypedControllerManagedBy[selectorKey](mgr).
		Named(creatorName).
		WatchesRawSource(ctrlsource.TypedFunc[selectorKey](objects)).
		WatchesRawSource(ctrlsource.TypedKind(mgr.GetCache(), &k8spluginv1alpha1.ResourceBundleState{},
			handler.TypedEnqueueRequestsFromMapFunc(c.keysOf(all.membership)), released)).
		WithOptions(c.options()).
		Complete(c)
}

// clients are the clients that watches use.
type clients struct {
	kinds    *discovery.DiscoveryClient
	objects  dynamic.Interface
	metadata metadata.Interface
}

func clientsOf(mgr ctrl.Manager) (clients, error) {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return clients{}, fmt.Errorf("cannot make a client for objects: %w", err)
	}
	bare, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return clients{}, fmt.Errorf("cannot make a client for metadata: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return clients{}, fmt.Errorf("cannot make a client for discovery: %w", err)
	}
	return clients{kinds: kinds, objects: objects, metadata: bare}, nil
}

// of returns a function that returns the ListerWatcher of a kind. It reads only the metadata of ConfigMaps and Secrets, because nothing else of them is reported.
func (c clients) of(kind schema.GroupVersionKind) func(schema.GroupVersionResource, string) toolscache.ListerWatcher {
	if kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret") {
		return c.bare
	}
	return func(resource schema.GroupVersionResource, namespace string) toolscache.ListerWatcher {
		return observe.NewListerWatcher(c.objects.Resource(resource).Namespace(namespace))
	}
}

// bare returns a ListerWatcher of the metadata of objects. The API server does not send the rest.
func (c clients) bare(resource schema.GroupVersionResource, namespace string) toolscache.ListerWatcher {
	return observe.NewListerWatcher(c.metadata.Resource(resource).Namespace(namespace))
}
