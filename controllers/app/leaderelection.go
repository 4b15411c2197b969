package app

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The times of leader election are controller-runtime's defaults.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// stopTimeout is how long a term may take to stop once the Lease is lost. An attempt to renew begins up to retryPeriod
	// after the last success and lasts for renewDeadline; leaseDuration after the success, another replica may lead.
	stopTimeout = leaseDuration - renewDeadline - retryPeriod
)

// leaderElection takes part in leader election for as long as the program runs. Each time this replica is elected, it sets up a
// term and runs it until the Lease is lost.
type leaderElection struct {
	mgr    ctrl.Manager
	lock   *trackedLock
	logger logr.Logger
	// setup adds to a term what only the leader runs.
	setup func(t *term) error

	// unsynced serves inventory.UnsyncedPath.
	unsynced leaderHandler
	// indexed are the fields by which the program's cache is indexed. An index cannot be removed, so the next term uses it.
	indexed map[string]bool
}

// newLeaderElection returns the leader election of a manager that has none of its own.
func newLeaderElection(mgr ctrl.Manager, namespace, lease string, logger logr.Logger) (*leaderElection, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot find the name of this replica")
	}
	// The lock has no event recorder: to count repeated events takes a right of its own.
	config := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, lease, config, mgr.GetConfig(), renewDeadline)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make the lock on Lease %q", lease)
	}
	return &leaderElection{mgr: mgr, lock: &trackedLock{Interface: lock, now: time.Now}, logger: logger, indexed: map[string]bool{}}, nil
}

// Start takes part in elections. It returns when ctx ends, and with an error when a term fails.
func (e *leaderElection) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.campaign(ctx); err != nil {
			return err
		}
	}
	return nil
}

// campaign waits until this replica is elected, and leads until the Lease is lost or ctx ends.
func (e *leaderElection) campaign(ctx context.Context) error {
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, Name: controllerLease, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		// ReleaseOnCancel is not set: the elector would release the Lease before the term has stopped.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(leaseCtx context.Context) { elected <- leaseCtx }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot take part in leader election")
	}
	// The election outlives ctx, so that the Lease is renewed until the term has stopped.
	electionCtx, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electionCtx)
	}()
	leaseLost := false
	select {
	case <-ctx.Done():
	case leaseCtx := <-elected:
		err = e.lead(ctx, leaseCtx)
		leaseLost = leaseCtx.Err() != nil
	}
	resign()
	<-ended
	if elector.IsLeader() && !leaseLost {
		e.release(context.WithoutCancel(ctx))
	}
	return err
}

// lead runs one term. The term ends with ctx, and with leaseCtx, which ends when the Lease is lost.
func (e *leaderElection) lead(ctx, leaseCtx context.Context) error {
	termCtx, end := context.WithCancel(leaseCtx)
	defer end()
	defer context.AfterFunc(ctx, end)()
	e.logger.Info("This replica leads")
	current := &term{Manager: e.mgr, Registerer: metrics.Registry, election: e}
	defer current.cleanUp()
	if err := e.setup(current); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- current.run(termCtx) }()
	select {
	case err := <-stopped:
		if termCtx.Err() == nil {
			return err
		}
	case <-termCtx.Done():
		if err := e.waitUntilStopped(ctx, stopped); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		e.logger.Info("This replica no longer leads: it could not renew its Lease. It waits to be elected again")
	}
	return nil
}

// waitUntilStopped waits until a term has stopped. A term that runs on after its Lease is lost could write at the same time as
// the next leader, so the program must end. If ctx has ended, the manager's grace period bounds the wait.
func (e *leaderElection) waitUntilStopped(ctx context.Context, stopped <-chan error) error {
	var result error
	select {
	case result = <-stopped:
	case <-time.After(stopTimeout):
		if ctx.Err() == nil {
			return errors.Errorf("cannot stop leading within %s after the Lease was lost", stopTimeout)
		}
		result = <-stopped
	}
	e.logger.V(1).Info("The term has ended", "result", result)
	return nil
}

// release releases the Lease, so that the next leader need not wait until it expires.
func (e *leaderElection) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	record, _, err := e.lock.Get(ctx)
	if err == nil && record.HolderIdentity == e.lock.Identity() {
		record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime = "", 1, metav1.Now()
		err = e.lock.Update(ctx, *record)
	}
	if err != nil {
		e.logger.Error(err, "Cannot release the Lease; the next leader waits until it expires")
	}
}

// leaderHandler serves a path of the metrics server with the handler of the current term.
type leaderHandler struct {
	// current is nil while this replica does not lead.
	current atomic.Pointer[http.Handler]
}

// ServeHTTP implements http.Handler.
func (h *leaderHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := h.current.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	http.Error(w, "this replica does not lead", http.StatusServiceUnavailable)
}

// trackedLock is a lock that tracks until when this replica holds the Lease: no other replica can acquire it before. The elector
// does not track that: after the process was suspended or its machine slept, it acts as the leader for up to renewDeadline.
type trackedLock struct {
	resourcelock.Interface

	// now returns the time.
	now func() time.Time
	// heldUntil is in nanoseconds since 1970, by the wall clock: a monotonic clock stops while the machine sleeps.
	heldUntil atomic.Int64
}

// Create implements resourcelock.Interface.
func (l *trackedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.track(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *trackedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.track(record, func() error { return l.Interface.Update(ctx, record) })
}

// track calls write and, if it succeeds, records until when this replica holds the Lease. The time runs from before the write,
// and so from before other replicas see it.
func (l *trackedLock) track(record resourcelock.LeaderElectionRecord, write func() error) error {
	heldUntil := l.now().Add(leaseDuration).UnixNano()
	if record.HolderIdentity != l.Identity() {
		heldUntil = 0
		l.heldUntil.Store(heldUntil)
	}
	err := write()
	if err == nil {
		l.heldUntil.Store(heldUntil)
	}
	return err
}

// held reports whether this replica certainly still holds the Lease.
func (l *trackedLock) held() bool { return l.now().UnixNano() < l.heldUntil.Load() }
