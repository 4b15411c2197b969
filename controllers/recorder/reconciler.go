package recorder

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// etcdRetry is how long to wait before a place is reconciled again if etcd was unavailable. Each attempt blocks for the timeout of the store, so
	// that more places do not lead to more requests.
	etcdRetry = 5 * time.Second
	// conflictRetry is how long to wait before a place is reconciled again after a write conflict.
	conflictRetry = time.Second
	// leaseTimeout is the timeout for reading the Lease of this hub.
	leaseTimeout = 30 * time.Second
)

// reconciler keeps the saved bundles up to date.
type reconciler struct {
	options  Options
	live     client.Reader
	counters counters
	queue    queue
	outage   outage

	// hubMu guards hub, and is held while the Lease is read.
	hubMu sync.Mutex
	// hub is the identity of this hub in etcd; empty until the Lease has been read.
	hub string

	// mu guards the following fields.
	mu sync.Mutex
	// records holds the state of each place between reconciles.
	records map[appcontext.AppInCluster]record
	// revision is the latest known revision of etcd.
	revision int64
}

// record is the state of a place between reconciles.
type record struct {
	state state
	// saved is true if a bundle is saved at the place.
	saved    bool
	coWriter coWriter
}

// Reconcile reconciles a place, or lists the saved bundles.
func (r *reconciler) Reconcile(ctx context.Context, p appcontext.AppInCluster) (ctrl.Result, error) {
	if err := r.options.View.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	}
	hub, err := r.identity(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var wait time.Duration
	if p == listRequest {
		err = r.enqueueSaved(ctx)
	} else {
		wait, err = r.reconcilePlace(ctx, p, hub)
	}
	if err != nil {
		return r.resultOf(err, p, log.FromContext(ctx))
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// reconcilePlace gathers the input for a place, decides what to do, does it, and records the result. It returns when to reconcile again if
// nothing changes; zero means never.
func (r *reconciler) reconcilePlace(ctx context.Context, p appcontext.AppInCluster, hub string) (time.Duration, error) {
	r.mu.Lock()
	revision, before := r.revision, r.records[p]
	r.mu.Unlock()
	stored, err := r.options.Store.ReadBundle(ctx, p)
	if err != nil {
		return 0, err
	}
	logger := log.FromContext(ctx)
	r.checkRevision(revision, stored.AsOf, logger)
	s := input{stored: stored, hub: hub, readyKeys: r.options.ReadyKeys, coWriter: before.coWriter, now: r.options.Clock.Now()}
	s.findBundles(r.options.View)
	d := decide(s)
	now := record{d.state, stored.Saved != nil, d.coWriter}
	switch d.action {
	case actionNone:
	case actionRemove:
		err = r.options.Store.RemoveBundle(ctx, stored)
		now.saved = err != nil
		r.count(operationRemove, err)
	case actionSave:
		err = r.save(ctx, s)
		now.saved = now.saved || err == nil
	}
	r.outage.update(err, logger)
	if err != nil {
		now.state, now.coWriter = statePending, s.coWriter
	}
	r.mu.Lock()
	if r.records[p] = now; now == (record{}) {
		delete(r.records, p)
	}
	r.mu.Unlock()
	if err == nil {
		logTakeover(logger, p, before.state, d.state)
	}
	return d.requeueAfter, err
}

// checkRevision records now as the revision of etcd; before is an earlier one. If the revision has decreased, etcd was
// restored from a backup and may contain any older state, so every place is reconciled again.
func (r *reconciler) checkRevision(before, now int64, logger logr.Logger) {
	r.mu.Lock()
	restored := now < before && now < r.revision // Otherwise another worker has handled it.
	if restored {
		r.revision = now
	} else {
		r.revision = max(r.revision, now)
	}
	r.mu.Unlock()
	if !restored {
		return
	}
	logger.Info("Etcd was restored from a backup; comparing every bundle with what is saved", "revision", now, "before", before)
	for _, b := range r.options.View.All() {
		if p, ok := placeOf(b.Cluster, b.Labels); ok {
			r.queue.Add(p)
		}
	}
	r.queue.Add(listRequest)
}

// logTakeover logs when a place is yielded to another writer, and when it is taken over again.
func logTakeover(logger logr.Logger, p appcontext.AppInCluster, before, now state) {
	switch {
	case before == now:
	case now == stateYielded:
		logger.Info("Another writer, such as EMCO's rsync, saves the bundle; yielding to it", "place", p.String())
	case before == stateYielded && now == stateSaved:
		logger.Info("No other writer saves the bundle any more; taking it over", "place", p.String())
	}
}

// identity returns the identity of this hub in etcd: the uid of its Lease, which does not change when the process restarts.
func (r *reconciler) identity(ctx context.Context) (string, error) {
	r.hubMu.Lock()
	defer r.hubMu.Unlock()
	if r.hub != "" {
		return r.hub, nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	var lease coordinationv1.Lease
	if err := r.live.Get(ctx, r.options.Lease, &lease); err != nil {
		return "", errors.Wrapf(err, "cannot get Lease %q", r.options.Lease)
	}
	r.hub = string(lease.UID)
	return r.hub, nil
}

// enqueueSaved enqueues all places with a saved bundle: the bundles may have been deleted while no recorder ran.
func (r *reconciler) enqueueSaved(ctx context.Context) error {
	all, err := r.options.Store.SavedBundles(ctx)
	if err != nil {
		return err
	}
	for p := range all {
		r.queue.Add(p)
	}
	return nil
}

// save reads the whole bundle of a place, and saves it if it differs from the saved one.
func (r *reconciler) save(ctx context.Context, s input) error {
	seen := r.options.Clock.Now()
	whole, err := r.options.View.ReadBundle(ctx, s.bundle.BundleKey)
	if errors.Is(err, fleet.ErrGone) {
		return errMoved
	}
	if err != nil {
		r.counters.errors.WithLabelValues(causeCluster).Inc()
		return err
	}
	if place, ok := placeOf(s.bundle.Cluster, whole.Labels); !ok || place != s.stored.Place {
		return errMoved
	}
	text, digest, err := textOf(whole.Status)
	if err != nil {
		r.counters.errors.WithLabelValues(causeCluster).Inc()
		return err
	}
	next := appcontext.SavedBundle{
		Seen: seen, Namespace: whole.Namespace, Name: whole.Name, UID: string(whole.UID), ResourceVersion: whole.ResourceVersion, Digest: digest, Hub: s.hub,
	}
	if r.options.ReadyKeys {
		cluster, err := r.options.Store.ReadCluster(ctx, s.stored.Place)
		if err != nil {
			return err
		}
		if next.Ready, err = readyKeys(s.bundle, whole.Status, cluster); err != nil {
			return err
		}
		next.ResourceVersion = s.bundle.ResourceVersion // The version that readyKeys used. If the whole bundle is newer, the keys are computed again later.
	}
	if s.stored.IsOurs() && isSaved(*s.stored.Saved, next) {
		return nil
	}
	if s.duplicates > 0 {
		log.FromContext(ctx).Info("Several bundles are for one place, and one of them is saved", "place", s.stored.Place.String(), "namespace", next.Namespace, "name", next.Name, "others", s.duplicates)
	}
	err = r.options.Store.SaveBundle(ctx, s.stored, text, next)
	for errors.Is(err, appcontext.ErrTooLarge) {
		shorter, ok := truncate(text)
		if !ok {
			break
		}
		text = shorter
		err = r.options.Store.SaveBundle(ctx, s.stored, text, next)
	}
	r.count(operationSave, err)
	return err
}

// isSaved reports whether saving next would not change what is saved.
func isSaved(saved, next appcontext.SavedBundle) bool {
	return saved.Digest == next.Digest && saved.UID == next.UID && saved.Hub == next.Hub && maps.Equal(saved.Ready, next.Ready)
}

// errMoved means that a bundle is gone, or belongs to another place now. The watch of its cluster delivers that change.
var errMoved = errors.New("the bundle has gone or belongs to another place")

func (r *reconciler) count(operation string, err error) {
	if err == nil {
		r.counters.writes.WithLabelValues(operation).Inc()
	}
}

// resultOf returns the result of a reconcile that failed with err. An outage of etcd is logged once, not for each place.
func (r *reconciler) resultOf(err error, p appcontext.AppInCluster, logger logr.Logger) (ctrl.Result, error) {
	switch {
	case errors.Is(err, errMoved):
		return ctrl.Result{}, nil
	case errors.Is(err, appcontext.ErrConflict), errors.Is(err, appcontext.ErrNotFound):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	case outageKind(err) != nil:
		r.counters.errors.WithLabelValues(causeEtcd).Inc()
		r.outage.update(err, logger)
		return ctrl.Result{RequeueAfter: etcdRetry}, nil //nolint:nilerr // The outage has been logged.
	case errors.Is(err, appcontext.ErrTooLarge):
		r.counters.errors.WithLabelValues(causeSize).Inc()
	}
	if errors.Is(err, appcontext.ErrInvalid) { // No context can have such a place.
		logger.V(1).Info("The label of a bundle names no place", "problem", err.Error())
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, errors.Wrapf(err, "cannot keep %q", p)
}

// outageKind returns which error an err is that means that etcd is unavailable; nil if it is none.
func outageKind(err error) error {
	for _, kind := range []error{appcontext.ErrUnavailable, appcontext.ErrDenied, appcontext.ErrNoSpace, appcontext.ErrClosed} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// outage records whether etcd is unavailable.
type outage struct {
	mu sync.Mutex
	// kind is the error of outages that applies; nil while etcd is available.
	kind error
}

// update records whether etcd is available, which the result of a request shows, and logs when that changes.
func (o *outage) update(err error, logger logr.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := outageKind(err)
	switch {
	case errors.Is(o.kind, kind):
	case kind != nil:
		logger.Info("Etcd is unavailable; retrying", "problem", err.Error())
	default:
		logger.Info("Etcd is available again")
	}
	o.kind = kind
}
