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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// Rights in the namespace of the Secrets of clusters. Package fleet has those to list and watch Secrets.
//
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=secrets,verbs=patch
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=configmaps,resourceNames=healthscope-clusters,verbs=get;update

// The bounds of the backoff between attempts to renew the token of one cluster.
const (
	minRetryDelay = 5 * time.Second
	// maxRequeueDelay is also the longest wait for a token that is not due yet: the queue's
	// timer stops while the machine sleeps, and the token's lifetime does not.
	maxRequeueDelay = time.Minute
)

// Options configure Setup.
type Options struct {
	// Namespace is the namespace of the Secrets of clusters, where their states are published. The default is corev1alpha2.DefaultClustersNamespace.
	Namespace string
	// Secrets holds the Secrets of clusters and no others, at least their metadata and kubeconfigs. The caller starts it.
	Secrets cache.Cache
	// States gives the states of the clusters.
	States States
	// Lease is the Lease of the controller.
	Lease types.NamespacedName
	// Metrics receives the metrics of tokens.
	Metrics prometheus.Registerer
	// TracerProvider traces reconciles. Nil disables tracing.
	TracerProvider trace.TracerProvider
	// Clock is the clock. The default is the real clock.
	Clock clock.PassiveClock
}

// Setup adds to a manager the controller that renews the tokens of members, and the publisher of the states of clusters. Both run on
// the leader. The controller does not wait for the Secrets: a hub that may not read them yet runs without members.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	namespace := cmp.Or(o.Namespace, corev1alpha2.DefaultClustersNamespace)
	p := &publisher{
		reader: mgr.GetAPIReader(), writer: mgr.GetClient(), states: o.States, namespace: namespace, lease: ObjectName(o.Lease),
		logger: mgr.GetLogger().WithName("clusters"),
	}
	r := &renewer{
		secrets: o.Secrets, writer: mgr.GetClient(), recorder: mgr.GetEventRecorder("healthscope-controller"), clock: o.Clock, tokens: map[types.NamespacedName]renewal{},
	}
	if err := errors.Join(mgr.Add(p), o.Metrics.Register(r)); err != nil {
		return errors.Wrap(err, "cannot add the publisher of clusters and the metrics of tokens")
	}
	informer, err := o.Secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch the Secrets of clusters")
	}
	err = builder.TypedControllerManagedBy[reconcile.Request](mgr).
		Named("tokens").
		WatchesRawSource(&source.Informer{Informer: informer, Handler: &handler.EnqueueRequestForObject{}}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRequeueDelay),
		}).
		Complete(tracing.Reconciler(o.TracerProvider, "tokens", tracing.Object, r))
	return errors.Wrap(err, "cannot set up the renewal of tokens")
}
