package scope

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/healthscope"
)

// Inventory reports the state of a scope's resources in the inventory.
type Inventory interface {
	// Report returns nil when the scope's resources do not go to an inventory. partial are the clusters that can be seen in which bundles do not name all resources.
	Report(scope types.NamespacedName, members []AppMember, partial []string) *InventoryReport
	// Subscribe calls changed for every scope for which there may be another report. changed must not block.
	Subscribe(changed func(scope types.NamespacedName))
}

// HealthChecks are the health checks that the configuration defines.
type HealthChecks interface {
	// Problem returns a message that names the health checks that cannot be used, and why; empty when all can be used.
	Problem() string
	// Subscribe calls changed whenever the answer may have changed. changed must not block.
	Subscribe(changed func())
}

// reconciler keeps the status of scopes up to date. It is also the source of the requests that do not come from a scope itself.
type reconciler struct {
	Options

	client client.Client
	// apiReader reads from the API server, and not from the cache.
	apiReader       client.Reader
	pods            *podDiagnosisCache
	dependencyIndex *dependencyIndex
	recorder        events.EventRecorder
	// queue is set once the controller has started.
	queue queue
}

// Reconcile gathers what belongs to a scope, decides its health, writes its status if it differs, and records events.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.View.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	}
	var scope corev1alpha2.HealthScope
	if err := r.client.Get(ctx, req.NamespacedName, &scope); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, errors.Wrapf(err, "cannot get HealthScope %q", req.NamespacedName)
		}
		r.forget(req.NamespacedName) //nolint:contextcheck // Watches live longer than this call.
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	entry := r.Registry.entryFor(&scope, now)
	if newer(entry.written, &scope) {
		scope = *entry.written.DeepCopy()
	} else {
		entry.written = nil // The cache has caught up.
	}

	referrers, err := r.findReferrers(ctx, &scope)
	if err != nil {
		return ctrl.Result{}, err
	}
	g := r.gather(&scope, referrers, now) //nolint:contextcheck // As above.
	if g.syncWait > 0 {
		return ctrl.Result{RequeueAfter: g.syncWait}, nil
	}

	r.pods.diagnose(ctx, &g, r.Policy, now)
	v := decide(&scope.Spec, g, entry.history, r.Policy, now)
	v.Generation, v.Maintenance, v.ConflictsWith = scope.Generation, isMuted(&scope, v, r.View.State), entry.conflict.otherManager(now)
	r.Guard.SetConflict(req.String(), v.ConflictsWith)
	r.Registry.put(req.NamespacedName, v.Judged)
	next := sooner(healthscope.Until(v.nextCheck, now), entry.conflict.remaining(now))

	before := scope.DeepCopy()
	scope.Status = newStatus(&scope, v, r.externalStatus(req.NamespacedName, v), now)
	wait, err := r.publish(ctx, entry, before, &scope, v.Maintenance, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sooner(next, wait)}, nil
}

// forget drops the state of a scope that no longer exists.
func (r *reconciler) forget(scope types.NamespacedName) {
	r.dependencyIndex.set(scope, nil)
	r.Objects.Want(scope, nil)
	if r.Probes != nil {
		r.Probes.Want(scope, nil)
	}
	r.Guard.SetConflict(scope.String(), "")
	if r.Registry.remove(scope) == 0 {
		r.Guard.Kept() // Nothing is left to write.
	}
}

// findReferrers returns the scopes of the namespace whose references lead to a scope, if the scope refers to scopes.
func (r *reconciler) findReferrers(ctx context.Context, scope *corev1alpha2.HealthScope) (sets.Set[string], error) {
	if len(scopeRefs(scope, r.View.Cluster())) == 0 {
		return nil, nil
	}
	var list corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &list, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "cannot list the HealthScopes of namespace %q", scope.Namespace)
	}
	return referrersOf(scope, list.Items, r.View.Cluster()), nil
}

// gather collects what belongs to a scope. If the scope has new dependencies, they may not be watched yet and a change of them may
// have been missed, so that it collects again.
func (r *reconciler) gather(scope *corev1alpha2.HealthScope, referrers sets.Set[string], now time.Time) gathered {
	name := client.ObjectKeyFromObject(scope)
	var g gathered
	for range maxDepth + 3 { // Each pass goes one step further: to what the scope refers to, what that leads to, and the versions of components.
		g = (&gatherer{
			scope: scope, view: r.View, lookup: r.Objects.Get, selectObjects: r.Objects.Select, trusted: r.TrustedNamespaces, contexts: r.Contexts, probes: r.Probes, now: now, referrers: referrers,
		}).gather()
		r.Objects.Want(name, g.dependencies.kinds())
		if !r.dependencyIndex.set(name, g.dependencies) {
			return g
		}
	}
	g.syncWait = max(g.syncWait, time.Second) // The dependencies keep changing.
	return g
}

// publish writes a status if it differs, and records events. It returns when to do so again; zero means at the next change.
func (r *reconciler) publish(ctx context.Context, e *scopeEntry, before, scope *corev1alpha2.HealthScope, muted bool, now time.Time) (wait time.Duration, err error) {
	sent := scope.Status.Summary
	if !equality.Semantic.DeepEqual(before.Status, scope.Status) {
		if wait, err := r.write(ctx, e, before, scope, now); err != nil || wait > 0 {
			return wait, err
		}
	}
	if scope.Status.Summary != sent {
		return pruning.Interval, nil // The CRD prunes the status. The response is not what was judged, so no event is recorded from it.
	}
	return sooner(r.recordHealth(ctx, e, scope, muted, now), r.recordInventory(ctx, e, scope, now)), nil
}

func (r *reconciler) externalStatus(name types.NamespacedName, v judgement) externalStatus {
	o := externalStatus{state: r.View.State}
	if r.Inventory != nil {
		partial := slices.DeleteFunc(slices.Clone(v.Partial), func(cluster string) bool {
			state, known := r.View.State(cluster)
			return !known || !state.Reachable()
		})
		o.inventory = r.Inventory.Report(name, v.Members, partial)
	}
	if r.HealthChecks != nil {
		o.healthChecks = r.HealthChecks.Problem()
	}
	return o
}
