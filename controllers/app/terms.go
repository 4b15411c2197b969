package app

import (
	"context"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The times of leader election; they are controller-runtime's defaults.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// stopTime is how long what the leader runs may take to end once its Lease is lost: after that, another replica may lead.
	stopTime = leaseDuration - renewDeadline
)

// terms runs what one replica does for all: it takes part in the election for as long as the program runs, and each
// time that this replica is elected it sets up a term and runs it until the Lease is lost. The program itself goes on,
// because its other servers answer without a Lease.
type terms struct {
	mgr  ctrl.Manager
	lock resourcelock.Interface
	// setup adds to a term what the leader runs. ctx is the life of the term.
	setup  func(ctx context.Context, t *term) error
	logger logr.Logger

	// elected is closed when this replica is elected for the first time.
	elected     chan struct{}
	electedOnce sync.Once
	indexes     indexes
	handlers    handlers
}

// newTerms makes the terms of a manager that does not elect by itself.
func newTerms(mgr ctrl.Manager, namespace, lease string, logger logr.Logger) (*terms, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out the name of this replica")
	}
	// There are no events of the election: one that repeats itself is counted, which takes a right of its own.
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, lease, resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, mgr.GetConfig(), renewDeadline)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make the Lease %q", lease)
	}
	return &terms{mgr: mgr, lock: lock, logger: logger, elected: make(chan struct{}), indexes: indexes{}}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*terms) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when ctx ends, and with an error when what the leader runs fails.
func (t *terms) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := t.compete(ctx); err != nil {
			return err
		}
	}
	return nil
}

// compete waits until this replica is elected, leads until the Lease is lost or ctx ends, and gives the Lease back.
func (t *terms) compete(ctx context.Context) error {
	leading := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: t.lock, Name: controllerLease, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(c context.Context) { leading <- c }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot take part in the election of a leader")
	}
	// The Lease is given back only when what the leader runs has ended: ctx must not end the election.
	electing, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case c := <-leading:
		err = t.lead(ctx, c)
	}
	resign()
	<-ended
	return err
}

// lead runs one term until leading, the context of the Lease, or ctx ends.
func (t *terms) lead(ctx, leading context.Context) error {
	work, end := context.WithCancel(leading)
	defer end()
	defer context.AfterFunc(ctx, end)()
	t.electedOnce.Do(func() { close(t.elected) })
	t.logger.Info("This replica leads")
	now := newTerm(t)
	defer now.release()
	if err := t.setup(work, now); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- now.run(work) }()
	select {
	case err := <-stopped:
		if work.Err() == nil {
			return err
		}
	case <-work.Done():
		if err := t.stop(ctx, stopped); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		t.logger.Info("This replica does not lead any more, because it could not renew its Lease; it waits to be elected again")
	}
	return nil
}

// stop waits for the end of a term. A term that goes on after its Lease is lost would write beside another leader's; then
// the program has to end. When ctx ends, the manager's own grace period bounds the wait.
func (t *terms) stop(ctx context.Context, stopped <-chan error) error {
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case err := <-stopped:
		t.logger.V(1).Info("The term has ended", "how", err)
		return nil
	case <-late.C:
	}
	if ctx.Err() == nil {
		return errors.Errorf("cannot stop leading within %s after the Lease was lost", stopTime)
	}
	t.logger.V(1).Info("The term has ended", "how", <-stopped)
	return nil
}

// handlers serves, at paths of the metrics server, what the present term has for them.
type handlers struct{ byPath sync.Map }

// serve adds to a manager the paths that terms may have handlers for.
func (h *handlers) serve(mgr ctrl.Manager, paths ...string) error {
	for _, path := range paths {
		current := &atomic.Pointer[http.Handler]{}
		h.byPath.Store(path, current)
		err := mgr.AddMetricsServerExtraHandler(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if handler := current.Load(); handler != nil {
				(*handler).ServeHTTP(w, r)
				return
			}
			http.Error(w, "this replica does not lead", http.StatusServiceUnavailable)
		}))
		if err != nil {
			return errors.Wrapf(err, "cannot serve %q", path)
		}
	}
	return nil
}

// set puts a handler in place of the one before; nil for none.
func (h *handlers) set(path string, handler http.Handler) error {
	current, ok := h.byPath.Load(path)
	if !ok {
		return errors.Errorf("cannot serve %q: no term may", path)
	}
	if handler == nil {
		current.(*atomic.Pointer[http.Handler]).Store(nil) //nolint:forcetypeassert // serve stores nothing else.
		return nil
	}
	current.(*atomic.Pointer[http.Handler]).Store(&handler) //nolint:forcetypeassert // As above.
	return nil
}
