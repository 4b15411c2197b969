package scope

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// fieldOwner is the name under which status is written.
const fieldOwner = client.FieldOwner("healthscope-controller")

// writeTimeout is the deadline of writing one status.
const writeTimeout = 30 * time.Second

// settleRetry is how long a scope waits for a kind that is being read for the first time, if nothing tells it sooner.
const settleRetry = fleet.SettleTime + time.Second

// Inventory tells how far the inventory is with the resources of a scope.
type Inventory interface {
	// Report returns nil when the scope's resources do not go to an inventory.
	Report(scope types.NamespacedName, members []Placed) *InventoryReport
}

// reconciler keeps the status of scopes true.
type reconciler struct {
	client    client.Client
	view      *fleet.View
	objects   *fleet.Objects
	registry  *Registry
	inventory Inventory
	recorder  events.EventRecorder
	policy    healthscope.Policy
	clock     clock.PassiveClock
}

// Reconcile gathers what belongs to a scope, decides its health, and writes and tells what has changed.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.view.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	}
	var scope corev1alpha2.HealthScope
	if err := r.client.Get(ctx, req.NamespacedName, &scope); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, errors.Wrapf(err, "cannot get HealthScope %q", req.NamespacedName)
		}
		r.objects.Want(req.NamespacedName, nil) //nolint:contextcheck // Watches live longer than this call.
		r.registry.remove(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	entry := r.registry.entry(&scope)
	if newer(entry.written, &scope) {
		scope = *entry.written.DeepCopy()
	} else {
		entry.written = nil // The cache has caught up.
	}

	r.objects.Want(req.NamespacedName, wantedKinds(&scope, r.view.Cluster())) //nolint:contextcheck // As above.
	g := (&gatherer{scope: &scope, bundles: r.view, lookup: r.objects.Get}).gather()
	if g.settling {
		return ctrl.Result{RequeueAfter: settleRetry}, nil
	}

	now := r.clock.Now()
	v := decide(&scope.Spec, g, entry.since, r.policy, now)
	r.registry.put(&scope, v)

	before := scope.DeepCopy()
	scope.Status = newStatus(&scope, v, r.view.Clusters(), r.report(req.NamespacedName, v), now)
	if !equality.Semantic.DeepEqual(before.Status, scope.Status) {
		if err := r.write(ctx, before, &scope); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		entry.written = scope.DeepCopy()
		r.tell(ctx, before, &scope)
	}
	return ctrl.Result{RequeueAfter: healthscope.Until(v.nextCheck, now)}, nil
}

// report asks the inventory, where there is one.
func (r *reconciler) report(name types.NamespacedName, v verdict) *InventoryReport {
	if r.inventory == nil {
		return nil
	}
	return r.inventory.Report(name, v.members)
}

func (r *reconciler) write(ctx context.Context, before, after *corev1alpha2.HealthScope) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.client.Status().Patch(ctx, after, client.MergeFrom(before), fieldOwner)
	return errors.Wrapf(err, "cannot write the status of HealthScope %q", client.ObjectKeyFromObject(before))
}

// tell makes an event and a log line when the health of a scope has changed.
func (r *reconciler) tell(ctx context.Context, before, after *corev1alpha2.HealthScope) {
	if before.Status.Health == after.Status.Health {
		return
	}
	kind, reason := corev1.EventTypeWarning, "Unhealthy"
	switch after.Status.Health {
	case corev1alpha2.Healthy:
		kind, reason = corev1.EventTypeNormal, "Healthy"
	case corev1alpha2.UnknownHealth:
		reason = "HealthUnknown"
	case corev1alpha2.Unhealthy:
	}
	var note string
	if ready := meta.FindStatusCondition(after.Status.Conditions, corev1alpha2.ConditionReady); ready != nil {
		note = ready.Message
	}
	r.recorder.Eventf(after, nil, kind, reason, "Judge", "%s", note)
	log.FromContext(ctx).Info("Health changed", "from", before.Status.Health, "to", after.Status.Health, "firstCulprit", after.Status.FirstCulprit)
}

// newer says whether what was written last is newer than what the cache holds.
func newer(written, cached *corev1alpha2.HealthScope) bool {
	if written == nil || written.UID != cached.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, cached.ResourceVersion)
	return err == nil && order > 0
}
