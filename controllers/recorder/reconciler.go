package recorder

import (
	"context"
	"maps"
	"slices"
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
	// etcdRetry is when a place is reconciled again after etcd was unavailable. Each attempt waits for etcd as long as the store allows, so that more places do not mean more requests.
	etcdRetry = 5 * time.Second
	// conflictRetry is when a place is reconciled again that was written to in between.
	conflictRetry = time.Second
	// leaseTimeout is the deadline of reading our Lease.
	leaseTimeout = 30 * time.Second
)

// reconciler keeps what is saved of bundles up to date.
type reconciler struct {
	options  Options
	live     client.Reader
	index    *index
	counters counters
	queue    queue
	outage   outage

	mu sync.Mutex
	// hub is the identity of this hub in etcd; empty until the Lease has been read.
	hub string
	// revision is that of etcd when it was asked last.
	revision int64
}

// Reconcile gathers what is known of a place, decides what to do, does it, and records the result.
func (r *reconciler) Reconcile(ctx context.Context, p appcontext.Place) (ctrl.Result, error) {
	if err := r.options.View.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	}
	logger := log.FromContext(ctx)
	hub, err := r.identity(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if p == everything {
		return r.resultOf(r.findSaved(ctx), p, logger)
	}
	s, err := r.gather(ctx, p, hub)
	if err != nil {
		return r.resultOf(err, p, logger)
	}
	d := decide(s)
	switch d.step {
	case stay:
	case remove:
		err = r.options.Store.RemoveBundle(ctx, s.stored)
		r.count(operationRemove, err)
	case save:
		err = r.save(ctx, s)
	}
	r.outage.over(err, logger)
	ours := s.stored.Saved != nil
	if err != nil {
		r.index.replace(p, record{statePending, ours, s.coWriter})
		return r.resultOf(err, p, logger)
	}
	before := r.index.replace(p, record{d.state, d.step == save || d.step == stay && ours, d.coWriter})
	logTakeover(logger, p, before.state, d.state)
	return ctrl.Result{RequeueAfter: d.again}, nil
}

// gather finds out what is known of a place.
func (r *reconciler) gather(ctx context.Context, p appcontext.Place, hub string) (situation, error) {
	r.mu.Lock()
	before := r.revision
	r.mu.Unlock()
	stored, err := r.options.Store.ReadBundle(ctx, p)
	if err != nil {
		return situation{}, err
	}
	r.checkRevision(before, stored.AsOf, log.FromContext(ctx))
	s := situation{stored: stored, hub: hub, readyKeys: r.options.ReadyKeys, coWriter: r.index.get(p).coWriter, now: r.options.Clock.Now()}
	s.look(r.options.View)
	return s, nil
}

// bundles is the part of fleet.View that holds which bundles there are.
type bundles interface {
	State(cluster string) (fleet.ClusterState, bool)
	CompleteFor(cluster, namespace string) bool
	LabelledIn(cluster, key, value string) []*fleet.Bundle
}

// look finds the bundles of a place. One that is not seen does not exist only if all were known before and after: in
// between, a namespace may have come that is read, or one have gone with its bundles.
func (s *situation) look(view bundles) {
	p, saved := s.stored.Place, s.stored.Saved
	complete := func() bool { return saved != nil && view.CompleteFor(p.Cluster, saved.Namespace) }
	before := complete()
	if all := candidates(p, view, saved); len(all) > 0 {
		s.bundle, s.others = all[0], len(all)-1
	}
	_, s.known = view.State(p.Cluster)
	s.complete = before && complete()
}

// checkRevision records the revision of etcd now, which was before at an earlier one. When it has gone back, etcd was
// restored from a backup, and what is saved may be anything: every place is reconciled again.
func (r *reconciler) checkRevision(before, now int64, logger logr.Logger) {
	r.mu.Lock()
	restored := now < before && now < r.revision // Else another worker has noticed.
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
	r.queue.Add(everything)
}

// logTakeover logs when a place is yielded to another writer, and when it is taken over again.
func logTakeover(logger logr.Logger, p appcontext.Place, before, now state) {
	switch {
	case before == now:
	case now == stateYielded:
		logger.Info("Another writer, such as EMCO's rsync, saves the bundle; yielding to it", "place", p.String())
	case before == stateYielded && now == stateSaved:
		logger.Info("No other writer saves the bundle any more; taking it over", "place", p.String())
	}
}

// identity returns the identity of this hub in etcd: the uid of its Lease, which outlives every process.
func (r *reconciler) identity(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// findSaved enqueues all places at which something is saved: their bundles may have gone while no recorder ran.
func (r *reconciler) findSaved(ctx context.Context) error {
	all, err := r.options.Store.SavedBundles(ctx)
	if err != nil {
		return err
	}
	for p := range all {
		r.queue.Add(p)
	}
	return nil
}

// save reads the bundle of a place, whole, and saves it if it is another one than what is saved.
func (r *reconciler) save(ctx context.Context, s situation) error {
	seen := r.options.Clock.Now()
	whole, err := r.options.View.Whole(ctx, s.bundle.BundleKey)
	if errors.Is(err, fleet.ErrGone) {
		return errMoved
	}
	if err != nil {
		r.counters.errors.WithLabelValues(causeCluster).Inc()
		return err
	}
	if at, ok := placeOf(s.bundle.Cluster, whole.Labels); !ok || at != s.stored.Place {
		return errMoved
	}
	text, digest, err := textOf(whole.Status)
	if err != nil {
		r.counters.errors.WithLabelValues(causeCluster).Inc()
		return err
	}
	is := appcontext.SavedBundle{
		Seen: seen, Namespace: whole.Namespace, Name: whole.Name, UID: string(whole.UID), ResourceVersion: whole.ResourceVersion, Digest: digest, Hub: s.hub,
	}
	if r.options.ReadyKeys {
		at, err := r.options.Store.ReadCluster(ctx, s.stored.Place)
		if err != nil {
			return err
		}
		if is.Ready, err = readyKeys(s.bundle, whole.Status, at); err != nil {
			return err
		}
		is.ResourceVersion = s.bundle.ResourceVersion // What was judged: with the version that was read, if it is later, the keys are made again.
	}
	if s.stored.Ours() && saysTheSame(*s.stored.Saved, is) {
		return nil
	}
	if s.others > 0 {
		log.FromContext(ctx).Info("Several bundles are for one place, and one of them is saved", "place", s.stored.Place.String(), "namespace", is.Namespace, "name", is.Name, "others", s.others)
	}
	err = r.options.Store.SaveBundle(ctx, s.stored, text, is)
	for errors.Is(err, appcontext.ErrTooLarge) {
		shorter, ok := truncate(text)
		if !ok {
			break
		}
		text = shorter
		err = r.options.Store.SaveBundle(ctx, s.stored, text, is)
	}
	r.count(operationSave, err)
	return err
}

// saysTheSame reports whether nothing would be different if a bundle were saved again.
func saysTheSame(was, is appcontext.SavedBundle) bool {
	return was.Digest == is.Digest && was.UID == is.UID && was.Hub == is.Hub && maps.Equal(was.Ready, is.Ready)
}

// errMoved means that a bundle is gone, or belongs to another place by now. The watch of its cluster delivers that change.
var errMoved = errors.New("the bundle has gone or belongs to another place")

func (r *reconciler) count(operation string, err error) {
	if err == nil {
		r.counters.writes.WithLabelValues(operation).Inc()
	}
}

// resultOf returns the result of a reconcile that failed. That etcd is unavailable is logged once, and not for each place.
func (r *reconciler) resultOf(err error, p appcontext.Place, logger logr.Logger) (ctrl.Result, error) {
	switch {
	case err == nil || errors.Is(err, errMoved):
		return ctrl.Result{}, nil
	case errors.Is(err, appcontext.ErrConflict), errors.Is(err, appcontext.ErrNotFound):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	case isOutage(err):
		r.counters.errors.WithLabelValues(causeEtcd).Inc()
		r.outage.begin(err, logger)
		return ctrl.Result{RequeueAfter: etcdRetry}, nil
	case errors.Is(err, appcontext.ErrTooLarge):
		r.counters.errors.WithLabelValues(causeSize).Inc()
	}
	if errors.Is(err, appcontext.ErrInvalid) { // No context can have such a place.
		logger.V(1).Info("The label of a bundle names no place", "problem", err.Error())
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, errors.Wrapf(err, "cannot keep %q", p)
}

// outages are the errors for which etcd counts as unavailable.
var outages = []error{appcontext.ErrUnavailable, appcontext.ErrDenied, appcontext.ErrNoSpace, appcontext.ErrClosed}

func isOutage(err error) bool {
	return slices.ContainsFunc(outages, func(kind error) bool { return errors.Is(err, kind) })
}

// outage records whether etcd is unavailable.
type outage struct {
	mu sync.Mutex
	// kind is why; nil while it is available.
	kind error
}

// begin records that etcd is unavailable, and logs it when that, or the cause, has changed.
func (o *outage) begin(err error, logger logr.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range outages {
		if !errors.Is(err, kind) || errors.Is(o.kind, kind) {
			continue
		}
		logger.Info("Etcd is unavailable; retrying", "problem", err.Error())
		o.kind = kind
		return
	}
}

// over records that etcd is available, unless the error says otherwise.
func (o *outage) over(err error, logger logr.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kind != nil && !isOutage(err) {
		logger.Info("Etcd is available again")
		o.kind = nil
	}
}
