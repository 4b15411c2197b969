package scope

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/healthscope"
)

// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes,verbs=list;watch
// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=get;update,resourceNames=healthscope-controller

// concurrency is the number of scopes that are reconciled at once; most of the work is writing.
const concurrency = 4

// minBackoff and maxBackoff bound the time until a scope is reconciled again after an error, such as a status that cannot be
// written. After a long outage of the API server, a scope is late by at most maxBackoff.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// Options configure Setup.
type Options struct {
	// View holds the bundles of all clusters.
	View *fleet.View
	// Objects watches what scopes refer to directly.
	Objects *fleet.Objects
	// Registry receives the judgements.
	Registry *Registry
	// Inventory reports how far the inventory is; nil when there is none.
	Inventory Inventory
	// HealthChecks reports what is wrong with the health checks of the configuration; nil when there are none.
	HealthChecks HealthChecks
	// Contexts returns what the AppContexts of bundles require; nil when there are none.
	Contexts Contexts
	// Probes are the HTTP probes of Services; nil when they are not enabled.
	Probes Probes
	// TrustedNamespaces are the namespaces whose Applications may lead to workloads in other namespaces.
	TrustedNamespaces []string
	// Guard detects that the API server prunes what is written, for a readiness check. The default is one that is not checked.
	Guard *pruning.Guard
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// TracerProvider makes spans of reconciles. Nil means that there are none.
	TracerProvider trace.TracerProvider
	// Clock is the clock. The default is the machine's.
	Clock clock.PassiveClock
}

// checkTimeout is the deadline of CheckReadable. An API server that takes 10 seconds
// for a response needs 40, because discovery comes first.
const checkTimeout = 2 * time.Minute

// CheckReadable returns an error that says why HealthScopes cannot be read; nil when they can.
func CheckReadable(ctx context.Context, reader client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return errors.Wrap(reader.List(ctx, &corev1alpha2.HealthScopeList{}, client.Limit(1)), "cannot list HealthScopes")
}

// IsUnreadable reports whether an error of CheckReadable says that the CRD or the right to read HealthScopes is missing,
// which waiting does not change.
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
	r := &reconciler{
		Options: o, client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("healthscope-controller"),
		pods: &podDiagnosisCache{judge: o.Objects.JudgePods, known: lru.New(maxPodDiagnoses)}, dependencyIndex: newDependencyIndex(),
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("healthscope").
		For(&corev1alpha2.HealthScope{}).
		WatchesRawSource(r).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(r.cycleCandidates), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: newRateLimiter()}).
		Complete(tracing.Reconciler(o.TracerProvider, "healthscope", tracing.Object, r))
	return errors.Wrap(err, "cannot set up the HealthScope controller")
}

func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
}
