package enrol

import (
	"cmp"
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// Rights in the namespace of the Secrets of clusters. Those on Secrets to list and watch them are the fleet's.
//
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=secrets,verbs=patch
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=configmaps,resourceNames=healthscope-clusters,verbs=get;update

// The pauses between attempts to renew the token of one cluster.
const (
	minPause = 5 * time.Second
	// maxPause is also the longest wait for a token that is not due yet: the queue's
	// timer stands still while the machine sleeps, and the token's lifetime does not.
	maxPause = time.Minute
)

// Options configure Setup.
type Options struct {
	// Namespace is the namespace of the Secrets of clusters, where their states are published. The default is corev1alpha2.DefaultClustersNamespace.
	Namespace string
	// Secrets holds the Secrets of clusters and no others, at least their metadata and kubeconfigs. The caller starts it.
	Secrets cache.Cache
	// States are the clusters.
	States States
	// Lease is the Lease of the controller.
	Lease types.NamespacedName
	// Metrics receives the metrics of tokens.
	Metrics prometheus.Registerer
	// Spans makes spans of reconciles. Nil means that there are none.
	Spans trace.TracerProvider
	// Clock is the clock. The default is that of the machine.
	Clock clock.PassiveClock
}

// Setup adds to a manager what renews the tokens of members, and what publishes the states of clusters. Both run on the replica that leads.
func Setup(mgr ctrl.Manager, o Options) error {
	namespace := cmp.Or(o.Namespace, corev1alpha2.DefaultClustersNamespace)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	publisher := NewPublisher(mgr.GetAPIReader(), mgr.GetClient(), o.States, namespace, o.Lease, mgr.GetLogger().WithName("clusters"))
	if err := mgr.Add(publisher); err != nil {
		return errors.Wrap(err, "cannot add the publisher of clusters")
	}
	r := &renewer{
		secrets: o.Secrets, writer: mgr.GetClient(), recorder: mgr.GetEventRecorder("healthscope-controller"), clock: o.Clock, tokens: newTokens(),
	}
	if err := o.Metrics.Register(r.tokens); err != nil {
		return errors.Wrap(err, "cannot register the metrics of tokens")
	}
	err := builder.TypedControllerManagedBy[reconcile.Request](mgr).
		Named("tokens").
		WatchesRawSource(secretsOf(o.Secrets)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minPause, maxPause),
		}).
		Complete(tracing.Reconciler(o.Spans, "tokens", tracing.Object, r))
	return errors.Wrap(err, "cannot set up the renewal of tokens")
}

// secretsOf returns the source of requests for every Secret of a cache. It waits
// for nothing: a hub that may not read the Secrets yet does without members, and does not stop.
func secretsOf(secrets cache.Cache) source.Func {
	return func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err != nil {
			return errors.Wrap(err, "cannot watch the Secrets of clusters")
		}
		ask := func(object any) {
			if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				q.Add(reconcile.Request{NamespacedName: name.AsNamespacedName()})
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: ask, UpdateFunc: func(_, object any) { ask(object) }, DeleteFunc: ask,
		})
		return errors.Wrap(err, "cannot watch the Secrets of clusters")
	}
}
