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
)

// The times of leader election; they are controller-runtime's defaults.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// stopTime is how long a term may take to stop once the Lease is lost. An attempt to renew begins up to retryPeriod
	// after the last success and lasts for renewDeadline; leaseDuration after the success, another replica may lead.
	stopTime = leaseDuration - renewDeadline - retryPeriod
)

// terms takes part in leader election for as long as the program runs. Each time this replica is elected, it sets up a
// term and runs it until the Lease is lost.
type terms struct {
	mgr    ctrl.Manager
	lock   *ownLease
	logger logr.Logger
	// setup adds to a term what only the leader runs.
	setup func(t *term) error

	// unsynced serves inventory.UnsyncedPath.
	unsynced leaderHandler
	// indexed are the fields by which the program's cache is indexed. An index cannot be removed, so the next term uses it.
	indexed map[string]bool
}

// newTerms makes the terms of a manager that has no leader election of its own.
func newTerms(mgr ctrl.Manager, namespace, lease string, logger logr.Logger) (*terms, error) {
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
	return &terms{mgr: mgr, lock: &ownLease{Interface: lock, now: time.Now}, logger: logger, indexed: map[string]bool{}}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*terms) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when ctx ends, and with an error when a term fails.
func (t *terms) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := t.campaign(ctx); err != nil {
			return err
		}
	}
	return nil
}

// campaign waits until this replica is elected, and leads until the Lease is lost or ctx ends.
func (t *terms) campaign(ctx context.Context) error {
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: t.lock, Name: controllerLease, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		// ReleaseOnCancel is not set: the elector would release the Lease before the term has stopped.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(held context.Context) { elected <- held }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot take part in leader election")
	}
	// The election outlives ctx, so that the Lease is renewed until the term has stopped.
	electing, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	lost := false
	select {
	case <-ctx.Done():
	case held := <-elected:
		err = t.lead(ctx, held)
		lost = held.Err() != nil
	}
	resign()
	<-ended
	if elector.IsLeader() && !lost {
		t.release(context.WithoutCancel(ctx))
	}
	return err
}

// lead runs one term until held, the context of the Lease, or ctx ends.
func (t *terms) lead(ctx, held context.Context) error {
	leading, end := context.WithCancel(held)
	defer end()
	defer context.AfterFunc(ctx, end)()
	t.logger.Info("This replica leads")
	current := &term{Manager: t.mgr, terms: t}
	defer current.cleanUp()
	if err := t.setup(current); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- current.run(leading) }()
	select {
	case err := <-stopped:
		if leading.Err() == nil {
			return err
		}
	case <-leading.Done():
		if err := t.stop(ctx, stopped); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		t.logger.Info("This replica no longer leads: it could not renew its Lease. It waits to be elected again")
	}
	return nil
}

// stop waits until a term has stopped. A term that runs on after its Lease is lost could write at the same time as
// the next leader, so the program must end. If ctx has ended, the manager's grace period bounds the wait.
func (t *terms) stop(ctx context.Context, stopped <-chan error) error {
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case err := <-stopped:
		t.logger.V(1).Info("The term has ended", "result", err)
		return nil
	case <-late.C:
	}
	if ctx.Err() == nil {
		return errors.Errorf("cannot stop leading within %s after the Lease was lost", stopTime)
	}
	t.logger.V(1).Info("The term has ended", "result", <-stopped)
	return nil
}

// release releases the Lease, so that the next leader need not wait until it expires.
func (t *terms) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	record, _, err := t.lock.Get(ctx)
	if err == nil && record.HolderIdentity == t.lock.Identity() {
		record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime = "", 1, metav1.Now()
		err = t.lock.Update(ctx, *record)
	}
	if err != nil {
		t.logger.Error(err, "Cannot release the Lease; the next leader waits until it expires")
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
