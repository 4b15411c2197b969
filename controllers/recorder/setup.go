package recorder

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// concurrency is how many places are reconciled concurrently, and thus the maximum number of whole bundles in memory.
	concurrency = 8
	// minPause and maxPause bound the pauses before retries.
	minPause, maxPause = time.Second, time.Minute
)

// Options configure Setup.
type Options struct {
	// View holds the bundles of all clusters, and reads them.
	View *fleet.View
	// Store is the etcd with the AppContexts.
	Store *appcontext.Store
	// Lease is the Lease of the controller. Its uid distinguishes what this hub saved from what other hubs saved.
	Lease types.NamespacedName
	// Registry receives the metrics.
	Registry prometheus.Registerer
	// TracerProvider creates the spans of reconciles. Nil disables them.
	TracerProvider trace.TracerProvider
	// ReadyKeys makes the recorder write EMCO's readiness keys too.
	ReadyKeys bool
	// Clock is the clock. The default is the real clock.
	Clock clock.PassiveClock
}

// listRequest is the request to list and enqueue the saved bundles.
var listRequest = appcontext.AppInCluster{}

type queue = workqueue.TypedRateLimitingInterface[appcontext.AppInCluster]

// Setup adds the recorder to a manager. It runs on the leader only. It needs no permissions beyond those of the fleet and of leader election.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &reconciler{options: o, live: mgr.GetAPIReader(), records: map[appcontext.AppInCluster]record{}, counters: newCounters()}
	if err := o.Registry.Register(r); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	err := builder.TypedControllerManagedBy[appcontext.AppInCluster](mgr).
		Named("recorder").
		WatchesRawSource(source.TypedFunc[appcontext.AppInCluster](r.follow)).
		WithOptions(controller.TypedOptions[appcontext.AppInCluster]{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[appcontext.AppInCluster](minPause, maxPause),
		}).
		Complete(tracing.Reconciler(o.TracerProvider, "recorder", subjectOf, r))
	return errors.Wrap(err, "cannot set up the recorder")
}

// subjectOf returns the tracing subject of a request.
func subjectOf(p appcontext.AppInCluster) tracing.ObjectRef {
	return tracing.ObjectRef{Name: p.ContextID + "-" + p.App, Cluster: p.Cluster}
}

// follow enqueues the places of all bundles, now and whenever they change, until ctx ends.
func (r *reconciler) follow(ctx context.Context, q queue) error {
	r.queue = q
	changes, cancel := r.options.View.SubscribeFromStart(fleet.Writes | fleet.Clusters)
	q.Add(listRequest)
	go func() {
		defer cancel()
		changes.Deliver(ctx, r.changed)
	}()
	return nil
}

// changed enqueues the places that a change concerns. For a change of a cluster these are the saved ones, whose bundles may be gone.
func (r *reconciler) changed(c fleet.Change) {
	switch c := c.(type) {
	case fleet.BundleChange:
		if p, ok := placeOf(c.Cluster, c.Labels.Map()); ok {
			r.queue.Add(p)
		}
	case fleet.ClusterChange:
		r.enqueueRecorded(c.Cluster)
	case fleet.CompleteChange:
		r.enqueueRecorded("")
	}
}

// enqueueRecorded enqueues the places at which a bundle is recorded as saved: of a cluster or, if that is empty, of all.
func (r *reconciler) enqueueRecorded(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, place := range r.records {
		if place.saved && (cluster == "" || cluster == p.Cluster) {
			r.queue.Add(p)
		}
	}
}
