package monitor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Reasons of the events on bundles.
const (
	// eventStandingDown means that a bundle is left to another monitor.
	eventStandingDown = "StandingDown"
	// eventContested means that another client keeps changing what the monitor writes.
	eventContested = "Contested"
)

// reconciler keeps the status of one bundle right at a time.
type reconciler struct {
	// bundles reads bundles from the cache.
	bundles client.Reader
	// status writes the status of bundles.
	status statusWriter
	// live reads bundles from the API server.
	live client.Reader
	// gather returns the objects of a bundle, and the kinds of which it is not known which objects belong to it.
	gather func(*k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error)
	// wakeAll looks at all bundles again.
	wakeAll     func(context.Context)
	writeStates *writeStates
	// guard knows whether the CRD keeps what is written.
	guard *pruning.Guard
	// large takes large bundles to the controller that has a worker for them. It
	// is nil in that controller, which writes what it is given.
	large    chan<- event.GenericEvent
	recorder events.EventRecorder
	clock    clock.PassiveClock
	options  bundle.Options
}

// Reconcile compares the status of a bundle with its objects, and writes it
// when it differs.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b, err := r.cached(ctx, request.NamespacedName)
	if b == nil || err != nil || r.handOver(ctx, b) {
		return ctrl.Result{}, err
	}
	s := r.writeStates.of(b)
	s.Lock() // The other controller may be about to end with the bundle.
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
	if b, err = whole(b); err != nil {
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
	if s.contest(b, changes, now) {
		r.report(ctx, b, eventContested, "another client keeps changing the status, such as a second monitor with another configuration: it is written less and less often")
	}
	return r.write(ctx, s, b, next, changes)
}

// handOver leaves a large bundle to the controller of large ones, and reports whether it is one.
func (r *reconciler) handOver(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) bool {
	if r.large == nil || wholeSize(&b.Status) <= smallStatus {
		return false
	}
	select {
	case r.large <- event.GenericEvent{Object: b}:
	case <-ctx.Done():
	}
	return true
}

// cached returns the bundle as the cache has it, or nil when it is gone or going.
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

// holdOff returns how long the bundle must not be written, because it is
// another monitor's or was written a moment ago; zero or less means that it may be.
func (r *reconciler) holdOff(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (time.Duration, error) {
	wait, coWriter := s.standDown(b, now)
	if coWriter != "" {
		var err error
		if wait, err = r.leaveOutdated(ctx, s, b, coWriter, wait, now); err != nil {
			return 0, err
		}
	}
	if before := s.standsDown.Swap(coWriter != ""); coWriter != "" && !before {
		r.report(ctx, b, eventStandingDown, fmt.Sprintf("%q writes the status and drops what HealthScope's monitor adds: the bundle is left alone until that has not written for %s, or not what has changed for %s", coWriter, standDownPeriod, succeedAfter))
	}
	return max(wait, s.due(now)), nil
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
