package monitor

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// What a monitor of the default kinds does, and its Lease.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=healthscope-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=list;watch
// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates/status,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;services;configmaps;persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;daemonsets;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list;watch

const (
	// controllerName names the controller in logs and metrics.
	controllerName = "monitor"
	// workers is the number of bundles that are built and written at a time.
	workers = 4
	// claimIndex is the cache's index of bundles by their claims.
	claimIndex = "claims"
	// maxRetryPause bounds the pause before a failed write is tried again.
	maxRetryPause = 30 * time.Second
	minRetryPause = 50 * time.Millisecond
)

// ManagerOptions returns the options of a manager for Setup: a scheme with the
// bundles, a cache of the options' namespaces, and leader election with the
// monitor's Lease, which is released when the manager stops (the process must
// then end). The caller adds what is its own: addresses, logger, probes.
func ManagerOptions(opts Options) (ctrl.Options, error) {
	opts, err := opts.complete()
	if err != nil {
		return ctrl.Options{}, err
	}
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
			DefaultTransform:  cache.TransformStripManagedFields(),
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

// Setup adds a monitor to a manager that was made with ManagerOptions. The
// manager's configuration should have no client-side rate limit (QPS -1): the
// monitor paces itself, per bundle.
//
// It returns an error when an option cannot be used. The manager ends with an
// error when the cluster does not serve ResourceBundleStates.
func Setup(mgr ctrl.Manager, opts Options) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	ledger := newLedger()
	all, err := newWatches(mgr, opts, ledger)
	if err != nil {
		return fmt.Errorf("cannot set up monitor: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(all.run)); err != nil {
		return fmt.Errorf("cannot set up monitor: %w", err)
	}
	r := &reconciler{
		bundles: mgr.GetCache(),
		status:  mgr.GetClient().Status(),
		members: func(b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, error) {
			return all.members(claims(b, opts.LabelKeys), wanted(b, opts.LabelKeys))
		},
		ledger:  ledger,
		clock:   opts.Clock,
		options: bundle.Options{AllowedLabels: opts.AllowedLabels},
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&k8spluginv1alpha1.ResourceBundleState{}).
		WatchesRawSource(all).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			// In controller-runtime v0.24.1 the priority queue may never end when it is shut down
			// (kubernetes-sigs/controller-runtime#3538); the Lease would then not be released.
			UsePriorityQueue: new(false),
			RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetryPause, maxRetryPause),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up monitor: %w", err)
	}
	return nil
}

// newWatches makes one watch for each kind, label key and namespace.
func newWatches(mgr ctrl.Manager, opts Options, ledger *ledger) (*watches, error) {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for objects: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for discovery: %w", err)
	}
	namespaces := opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	all := &watches{
		index:   func(ctx context.Context) error { return indexClaims(ctx, mgr.GetFieldIndexer(), opts.LabelKeys) },
		bundles: bundlesIn(mgr.GetCache()),
		ledger:  ledger,
		logger:  mgr.GetLogger().WithName(controllerName),
	}
	for _, kind := range opts.Kinds {
		for _, key := range opts.LabelKeys {
			for _, namespace := range namespaces {
				all.all = append(all.all, newWatch(source{kind: kind, key: key, namespace: namespace, kinds: kinds, client: objects}))
			}
		}
	}
	return all, nil
}

// indexClaims makes the cache find bundles by their claims.
func indexClaims(ctx context.Context, indexer client.FieldIndexer, keys []string) error {
	byClaim := func(object client.Object) []string {
		b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
		if !ok {
			return nil
		}
		var values []string
		for _, c := range claims(b, keys) {
			values = append(values, c.index())
		}
		return values
	}
	if err := indexer.IndexField(ctx, &k8spluginv1alpha1.ResourceBundleState{}, claimIndex, byClaim); err != nil {
		return fmt.Errorf("cannot index bundles: %w", err)
	}
	return nil
}

// bundlesIn returns how to find the bundles in a cache that make a claim.
func bundlesIn(bundles client.Reader) func(context.Context, claim) ([]types.NamespacedName, error) {
	return func(ctx context.Context, c claim) ([]types.NamespacedName, error) {
		var list k8spluginv1alpha1.ResourceBundleStateList
		err := bundles.List(ctx, &list, client.InNamespace(c.namespace),
			client.MatchingFields{claimIndex: c.index()}, client.UnsafeDisableDeepCopyOption(true))
		if err != nil {
			return nil, err
		}
		names := make([]types.NamespacedName, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, nameOfBundle(&list.Items[i]))
		}
		return names, nil
	}
}
