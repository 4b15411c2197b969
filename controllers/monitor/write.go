package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// fieldOwner names the monitor in managedFields.
	fieldOwner = client.FieldOwner("healthscope-monitor")
	// writeTimeout bounds a write of a status.
	writeTimeout = 30 * time.Second
)

// statusWriter writes the status of bundles.
type statusWriter interface {
	// put replaces the status of a bundle, if it is still of the UID and resourceVersion that b names, and notes in b
	// what its metadata are then. The status of b stays what was sent; whether the API server kept it is seen when the cache has it.
	put(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) error
	// mark notes on a bundle that another monitor fills that it is out of date.
	mark(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, o k8spluginv1alpha1.OutOfDate) error
}

// write replaces the whole status, if the bundle is still the one it was made
// for. changes is the count of changes that the status takes into account.
func (r *reconciler) write(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, next k8spluginv1alpha1.ResourceBundleStateStatus, changes uint64) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	began := r.clock.Now()
	written := &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion},
		Status:     next,
	}
	if err := r.status.put(ctx, written); err != nil {
		return r.failed(ctx, s, b, sizeOf(&next), began, err)
	}
	written.ManagedFields = writers(written.ManagedFields)
	written.Spec = b.Spec // While the cache lags, this is the bundle, and its selector says what belongs to it.
	s.wrote(written, changes, began, r.clock.Since(began))
	if what := pruned(&next, &b.Status); what != "" && written.ResourceVersion == b.ResourceVersion {
		// Nothing was left to store of what was sent, so that no watch event will follow.
		r.inVain(ctx, s, began, what)
		return ctrl.Result{RequeueAfter: r.guard.Allow(began)}, nil
	}
	logWritten(ctrl.LoggerFrom(ctx), &b.Status, &next)
	return ctrl.Result{}, nil
}

// verify compares a bundle as the cache has it with the status that was sent to
// become just that, and stops writing while the API server drops a part of it.
func (r *reconciler) verify(ctx context.Context, s *writeState, sent *k8spluginv1alpha1.ResourceBundleStateStatus, cached *k8spluginv1alpha1.ResourceBundleState) {
	if what := pruned(sent, &cached.Status); what != "" {
		r.inVain(ctx, s, r.clock.Now(), what)
		return
	}
	if r.guard.Intact() {
		ctrl.LoggerFrom(ctx).Info("CRD no longer prunes status")
		r.wakeAll(ctx) // They wait for the next attempt, which is long.
	}
}

// inVain notes that the API server has pruned a write, as was seen then.
func (r *reconciler) inVain(ctx context.Context, s *writeState, seen time.Time, what string) {
	s.settled = settled{}
	if r.guard.Pruned(seen, what) {
		ctrl.LoggerFrom(ctx).Info("CRD prunes status; writes suspended but for an attempt every 30 seconds", "reason", what)
	}
}

// failed decides what to do after a write which began then and took about so many bytes of status.
func (r *reconciler) failed(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, size int, began time.Time, err error) (ctrl.Result, error) {
	logger := ctrl.LoggerFrom(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return r.notFound(ctx, s, b, began)
	case apierrors.IsConflict(err):
		s.attempted(began)
		logger.V(1).Info("Bundle has changed meanwhile, waiting for the change")
		return ctrl.Result{}, nil // The cache is about to be notified, which wakes the bundle.
	case tooLarge(err) && s.tooLarge(size, began):
		logger.Info("Bundle is too large for the API server, writing less of it", "bytes", size, "reason", err.Error())
		return ctrl.Result{RequeueAfter: max(s.due(began), minRetryPause)}, nil
	default:
		s.failed(began)
		return ctrl.Result{}, fmt.Errorf("cannot write status of bundle %q: %w", nameOfBundle(b), err)
	}
}

// notFound decides what to do after a write which began then, and was answered
// that there is no such bundle. That is so when it was deleted, of which the
// cache is notified in a moment; but an API server answers the same for every bundle
// when the CRD has no status subresource.
func (r *reconciler) notFound(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, began time.Time) (ctrl.Result, error) {
	s.attempted(began)
	exists, err := r.exists(ctx, b)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !exists:
		ctrl.LoggerFrom(ctx).V(1).Info("Bundle is gone, nothing written")
		return ctrl.Result{}, nil // The cache will be notified, however late.
	}
	r.inVain(ctx, s, began, "the CRD has no status subresource")
	return ctrl.Result{RequeueAfter: r.guard.Allow(began)}, nil
}

// exists asks the API server whether there is still this bundle.
func (r *reconciler) exists(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) (bool, error) {
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind("ResourceBundleStateList"))
	err := r.live.List(ctx, &found, client.InNamespace(b.Namespace), client.MatchingFields{metav1.ObjectNameField: b.Name})
	if err != nil {
		return false, fmt.Errorf("cannot ask for bundle %q: %w", nameOfBundle(b), err)
	}
	return slices.ContainsFunc(found.Items, func(o metav1.PartialObjectMetadata) bool { return o.UID == b.UID }), nil
}

// tooLarge reports whether the API server, or etcd behind it, refused a write for its size.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large")
}

// pruned returns what the API server has dropped of a status; empty when it kept what this monitor adds.
func pruned(sent, kept *k8spluginv1alpha1.ResourceBundleStateStatus) string {
	switch {
	case sent.Summary != nil && kept.Summary == nil:
		return "the CRD prunes status.summary"
	case len(sent.Resources) > 0 && len(kept.Resources) == 0:
		return "the CRD prunes status.resources"
	default:
		return ""
	}
}

// logWritten logs a write, and the change of state that it shows.
func logWritten(logger logr.Logger, before, after *k8spluginv1alpha1.ResourceBundleStateStatus) {
	logger.V(1).Info("Wrote bundle", "resources", after.ResourceCount, "truncated", after.Truncated)
	if from, to := stateOf(before), stateOf(after); from != to {
		logger.Info("Bundle changed state", "from", from, "to", to, "resources", after.ResourceCount)
	}
}

// stateOf returns the state in the status of a bundle; empty when no HealthScope monitor has filled it.
func stateOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) string {
	if status.Summary == nil {
		return ""
	}
	return status.Summary.State
}
