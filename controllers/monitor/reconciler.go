package monitor

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

const (
	// fieldOwner names the monitor in managedFields.
	fieldOwner = client.FieldOwner("healthscope-monitor")
	// writeTimeout bounds a write of a status.
	writeTimeout = 30 * time.Second
)

// reconciler keeps the status of one bundle right at a time.
type reconciler struct {
	// bundles reads bundles from the cache.
	bundles client.Reader
	// status writes the status of bundles.
	status client.SubResourceWriter
	// members returns the objects of a bundle.
	members func(*k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, error)
	ledger  *ledger
	clock   clock.PassiveClock
	options bundle.Options
}

// Reconcile compares the status of a bundle with its objects, and writes it
// when it differs.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b, err := r.newest(ctx, request)
	if b == nil || err != nil {
		return ctrl.Result{}, err
	}
	changes := r.ledger.changes(request.NamespacedName)
	if r.ledger.settled(b, changes) {
		return ctrl.Result{}, nil
	}
	now := r.clock.Now()
	if due := r.ledger.due(request.NamespacedName, now); due > 0 {
		return ctrl.Result{RequeueAfter: due}, nil
	}
	objects, err := r.members(b)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot gather the objects of bundle %q: %w", request, err)
	}
	next := bundle.Build(objects, &b.Status, now, r.options)
	if len(b.Status.Malformed) == 0 && bundle.Equal(&b.Status, &next) {
		r.ledger.settle(b, changes)
		return ctrl.Result{}, nil
	}
	return r.write(ctx, b, next, changes)
}

// newest returns the newest known state of the bundle, or nil when it is gone or going.
func (r *reconciler) newest(ctx context.Context, request ctrl.Request) (*k8spluginv1alpha1.ResourceBundleState, error) {
	cached := &k8spluginv1alpha1.ResourceBundleState{}
	err := r.bundles.Get(ctx, request.NamespacedName, cached, client.UnsafeDisableDeepCopyOption(true))
	if apierrors.IsNotFound(err) {
		r.ledger.forget(request.NamespacedName)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get bundle %q from the cache: %w", request, err)
	}
	if !cached.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return r.ledger.newest(cached), nil
}

// write replaces the whole status, if the bundle is still the one it was made
// for. changes is the count of changes that the status takes into account.
func (r *reconciler) write(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, next k8spluginv1alpha1.ResourceBundleStateStatus, changes uint64) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	logger := ctrl.LoggerFrom(ctx)
	name, began := nameOfBundle(b), r.clock.Now()
	written := &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion},
		Status:     next,
	}
	err := r.status.Update(ctx, written, fieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		r.ledger.forget(name)
		logger.V(1).Info("Bundle is gone, nothing written")
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		r.ledger.failed(name, began)
		logger.V(1).Info("Bundle has changed meanwhile, looking at it again")
		return ctrl.Result{RequeueAfter: r.ledger.due(name, began)}, nil
	case err != nil:
		r.ledger.failed(name, began)
		return ctrl.Result{}, fmt.Errorf("cannot write status of bundle %q: %w", name, err)
	}
	written.ManagedFields = nil
	r.ledger.wrote(written, changes, began)
	logger.V(1).Info("Wrote bundle", "resources", next.ResourceCount, "truncated", next.Truncated)
	if from, to := stateOf(&b.Status), stateOf(&next); from != to {
		logger.Info("Bundle changed state", "from", from, "to", to, "resources", next.ResourceCount)
	}
	return ctrl.Result{}, nil
}

// stateOf is the state of a bundle as its status says it; empty when no monitor of ours has filled it.
func stateOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) string {
	if status.Summary == nil {
		return ""
	}
	return status.Summary.State
}
