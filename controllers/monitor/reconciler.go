package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// minRetryPause and maxRetryPause bound the pause before a failed reconcile is retried.
const (
	minRetryPause = 50 * time.Millisecond
	maxRetryPause = 30 * time.Second
)

// Reasons of the events on bundles.
const (
	// eventStandingDown means that a bundle is left to another monitor.
	eventStandingDown = "StandingDown"
	// eventWriteConflict means that another client keeps changing what the monitor writes.
	eventWriteConflict = "WriteConflict"
)

// reconciler keeps the status of bundles up to date.
type reconciler struct {
	// bundles reads bundles from the cache.
	bundles client.Reader
	// status writes the status of bundles.
	status statusWriter
	// live reads bundles from the API server.
	live client.Reader
	// gather returns the objects of a bundle, and the kinds whose objects are unknown.
	gather func(*k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error)
	// reads reports whether gather returns the object of an entry of a bundle if that object exists.
	reads func(*k8spluginv1alpha1.ResourceBundleState, k8spluginv1alpha1.ResourceHealth) bool
	// wakeAll enqueues all bundles.
	wakeAll     func(context.Context)
	writeStates *writeStates
	// guard tracks whether the CRD prunes the status.
	guard *pruning.Guard
	// large sends large bundles to the controller that has a worker for them. It
	// is nil in that controller, which reconciles bundles of any size.
	large    chan<- event.GenericEvent
	recorder events.EventRecorder
	clock    clock.PassiveClock
	options  bundle.Options
}

// Reconcile compares the status of a bundle with its objects, and writes it when it differs.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b, err := r.cached(ctx, request.NamespacedName)
	if b == nil || err != nil || r.handOver(ctx, b) {
		return ctrl.Result{}, err
	}
	s := r.writeStates.of(b)
	s.Lock() // The other controller may still be reconciling the bundle.
	defer s.Unlock()
	changes := s.changes.Load()
	b, sent := s.newest(b)
	if sent != nil {
		r.verify(ctx, s, sent, b)
	}
	if s.isSettled(b, changes) {
		return ctrl.Result{}, nil
	}
	now := r.clock.Now()
	if wait, err := r.holdOff(ctx, s, b, now); wait > 0 || err != nil {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if b, err = decompressed(b); err != nil {
		return ctrl.Result{}, err
	}
	next, err := r.build(s, b, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(b.Status.Malformed) == 0 && bundle.Equal(&b.Status, &next) {
		s.settle(b, changes)
		return ctrl.Result{}, nil
	}
	if wait := r.guard.Allow(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if s.conflict(b, changes, now) {
		r.report(ctx, b, eventWriteConflict, "another client keeps changing the status, such as a second monitor with another configuration: it is written less and less often")
	}
	return r.write(ctx, s, b, next, changes)
}

// handOver sends a large bundle to the controller of large bundles, and reports whether the bundle is large.
func (r *reconciler) handOver(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) bool {
	if r.large == nil || uncompressedSize(&b.Status) <= smallStatus {
		return false
	}
	select {
	case r.large <- event.GenericEvent{Object: b}:
	case <-ctx.Done():
	}
	return true
}

// cached returns the bundle from the cache, or nil if it is deleted or being deleted.
func (r *reconciler) cached(ctx context.Context, name types.NamespacedName) (*k8spluginv1alpha1.ResourceBundleState, error) {
	b := &k8spluginv1alpha1.ResourceBundleState{}
	err := r.bundles.Get(ctx, name, b, client.UnsafeDisableDeepCopyOption(true))
	switch {
	case apierrors.IsNotFound(err):
		r.writeStates.forget(name)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get bundle %q from the cache: %w", name, err)
	case !b.DeletionTimestamp.IsZero():
		return nil, nil
	}
	return b, nil
}

// build returns the status that the bundle should have.
func (r *reconciler) build(s *writeState, b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (k8spluginv1alpha1.ResourceBundleStateStatus, error) {
	options := r.options
	if s.limit > 0 {
		options.HardLimit = min(options.HardLimit, s.limit)
	}
	objects, unreadable, err := r.gather(b)
	if err != nil {
		return k8spluginv1alpha1.ResourceBundleStateStatus{}, fmt.Errorf("cannot gather the objects of bundle %q: %w", nameOfBundle(b), err)
	}
	options.Unreadable = unreadable
	return bundle.Build(objects, &b.Status, now, options), nil
}

// report records an event on a bundle, and logs it.
func (r *reconciler) report(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, reason, note string) {
	ctrl.LoggerFrom(ctx).Info("Bundle is also written by others", "reason", reason, "note", note)
	r.recorder.Eventf(b, nil, corev1.EventTypeWarning, reason, "Write", "%s", note)
}

// write replaces the whole status, unless the bundle has changed since the status
// was built. changes is the count of changes that the status takes into account.
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
	written.Spec = b.Spec // While the cache lags, this is the newest bundle, and its selector is needed.
	s.wrote(written, changes, began)
	if what := pruned(&next, &b.Status); what != "" && written.ResourceVersion == b.ResourceVersion {
		// The API server stored nothing, so no watch event will follow.
		return r.recordPruned(ctx, s, began, what), nil
	}
	logWritten(ctrl.LoggerFrom(ctx), &b.Status, &next)
	return ctrl.Result{}, nil
}

// verify compares the cached bundle with the status that was sent for this version,
// and suspends writes while the API server prunes the status.
func (r *reconciler) verify(ctx context.Context, s *writeState, sent *k8spluginv1alpha1.ResourceBundleStateStatus, cached *k8spluginv1alpha1.ResourceBundleState) {
	if what := pruned(sent, &cached.Status); what != "" {
		r.recordPruned(ctx, s, r.clock.Now(), what)
	} else if r.guard.Kept() {
		ctrl.LoggerFrom(ctx).Info("CRD no longer prunes status")
		r.wakeAll(ctx) // The bundles wait for the next attempt, up to 30 seconds.
	}
}

// recordPruned records that the API server has pruned the status of a write, and when that was seen. It returns when to try again.
func (r *reconciler) recordPruned(ctx context.Context, s *writeState, seen time.Time, what string) ctrl.Result {
	s.settled = settled{}
	if r.guard.Pruned(seen, what) {
		ctrl.LoggerFrom(ctx).Info("CRD prunes status; writes suspended but for an attempt every 30 seconds", "reason", what)
	}
	return ctrl.Result{RequeueAfter: r.guard.Allow(seen)}
}

// failed handles the error of a write that began at began, with about size bytes of status.
func (r *reconciler) failed(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, size int, began time.Time, err error) (ctrl.Result, error) {
	logger := ctrl.LoggerFrom(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return r.notFound(ctx, s, b, began)
	case apierrors.IsConflict(err):
		s.attempted(began)
		logger.V(1).Info("Bundle has changed meanwhile, waiting for the change")
		return ctrl.Result{}, nil // The watch event of the change enqueues the bundle.
	case tooLarge(err) && s.tooLarge(size, began):
		logger.Info("Bundle is too large for the API server, writing less of it", "bytes", size, "reason", err.Error())
		return ctrl.Result{RequeueAfter: max(s.due(began), minRetryPause)}, nil
	default:
		s.failed(began)
		return ctrl.Result{}, fmt.Errorf("cannot write status of bundle %q: %w", nameOfBundle(b), err)
	}
}

// notFound handles a NotFound error of a write that began at began. Either the bundle was deleted, and the watch event follows, or the CRD
// has no status subresource: then the API server returns NotFound for every bundle.
func (r *reconciler) notFound(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, began time.Time) (ctrl.Result, error) {
	s.attempted(began)
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind("ResourceBundleStateList"))
	err := r.live.List(ctx, &found, client.InNamespace(b.Namespace), client.MatchingFields{metav1.ObjectNameField: b.Name})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot ask for bundle %q: %w", nameOfBundle(b), err)
	}
	if !slices.ContainsFunc(found.Items, func(o metav1.PartialObjectMetadata) bool { return o.UID == b.UID }) {
		ctrl.LoggerFrom(ctx).V(1).Info("Bundle is gone, nothing written")
		return ctrl.Result{}, nil // The cache will be notified, however late.
	}
	return r.recordPruned(ctx, s, began, "the CRD has no status subresource"), nil
}

// tooLarge reports whether the API server or etcd rejected a write because of its size.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large")
}

// pruned returns which field of a status the API server has pruned; empty if it kept what this monitor adds.
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

// logWritten logs a write, and the change of the bundle's state if there is one.
func logWritten(logger logr.Logger, before, after *k8spluginv1alpha1.ResourceBundleStateStatus) {
	logger.V(1).Info("Wrote bundle", "resources", after.ResourceCount, "truncated", after.Truncated)
	if from, to := stateOf(before), stateOf(after); from != to {
		logger.Info("Bundle changed state", "from", from, "to", to, "resources", after.ResourceCount)
	}
}

// stateOf returns the state in the status of a bundle; empty if no HealthScope monitor has written it.
func stateOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) string {
	if status.Summary == nil {
		return ""
	}
	return status.Summary.State
}
