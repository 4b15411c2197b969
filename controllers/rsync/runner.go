package rsync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
	"github.com/healthscope/healthscope/healthscope/rules"
)

const (
	// lockName names the lock in etcd.
	lockName = "rsync"
	// etcdRetry is the pause before a request to etcd is retried after etcd was unavailable.
	etcdRetry = 2 * time.Second
	// handoverDelay is how long a new holder of the lock waits for the requests in flight of a holder that has lost it. Clusters do
	// not check the lock: a request that arrives later would undo the work of the new holder.
	handoverDelay = 2 * time.Second
	// releaseTimeout is how long the release of the lock may take when the program stops.
	releaseTimeout = 5 * time.Second
)

// Options configure Setup.
type Options struct {
	// Store is the etcd with the AppContexts.
	Store *appcontext.Store
	// Access returns the connection to a cluster; false while there is none.
	Access func(cluster string) (fleet.Access, bool)
	// Policy and HealthChecks decide when an app that others depend on is Ready.
	Policy       healthscope.Policy
	HealthChecks rules.UserRules
	// Retry is the pause before a step is retried in a cluster that did not answer. The default is DefaultRetry.
	Retry wait.Backoff
	// RetryRefused is the pause before refused steps are retried. The default is DefaultRetryRefused.
	RetryRefused wait.Backoff
	// DeletionOrder is the order in which the resources of an app in a cluster are deleted. The default is DeletionReverse.
	DeletionOrder configv1alpha1.DeletionOrder
	// HookTimeout is how long the work of an object of a hook may take. The default is DefaultHookTimeout.
	HookTimeout time.Duration
	// Registry receives the metrics.
	Registry prometheus.Registerer
	// Clock is the clock. The default is the system clock.
	Clock clock.WithTicker
	// Logger receives the log messages of the runner.
	Logger logr.Logger
}

// DefaultRetry begins with the pause of EMCO's rsync, and ends with half a minute.
var DefaultRetry = wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second}

// DefaultHookTimeout is long, because a Job can set its own limit with activeDeadlineSeconds.
const DefaultHookTimeout = time.Hour

// Setup adds a Runner to a manager. It runs on the leading replica.
func Setup(mgr ctrl.Manager, o Options) error {
	r := NewRunner(o)
	if err := o.Registry.Register(r); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	return errors.Wrap(mgr.Add(r), "cannot add rsync")
}

// Runner deploys contexts while it holds the lock.
type Runner struct {
	options  Options
	clusters *clusters
	logger   logr.Logger
	counters counters
	// standingDown is true after another program was found to write to the same etcd.
	standingDown atomic.Bool
}

// NewRunner returns a runner, which works while Start runs.
func NewRunner(o Options) *Runner {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Retry.Duration == 0 {
		o.Retry = DefaultRetry
	}
	if o.RetryRefused.Duration == 0 {
		o.RetryRefused = DefaultRetryRefused
	}
	if o.HookTimeout == 0 {
		o.HookTimeout = DefaultHookTimeout
	}
	return &Runner{options: o, clusters: newClusters(o.Access), logger: o.Logger, counters: newCounters()}
}

// Start works until ctx ends, and then returns nil. Whenever the lock is lost, it starts again from the state in etcd. If another
// program, such as EMCO's rsync, works on the same etcd, it deploys nothing until this program is restarted.
func (r *Runner) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		lock, err := r.options.Store.Lock(ctx, lockName)
		if err == nil {
			r.logger.Info("Deploying contexts")
			err = r.runWithLock(ctx, lock)
		}
		if other := (*otherWriterError)(nil); errors.As(err, &other) {
			r.standingDown.Store(true)
			r.logger.Error(err, "Not deploying contexts until this program is started again; stop EMCO's rsync, or set rsync.enabled to false")
			<-ctx.Done()
			clearCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			_ = r.clearStandingDown(clearCtx, appcontext.Condition{}) // The next start does so too.
			return nil
		}
		if ctx.Err() == nil {
			r.logger.Info("Not deploying contexts; retrying", "problem", err.Error())
			r.pause(ctx, etcdRetry)
		}
	}
	return nil
}

// runWithLock works until the lock is lost or etcd cannot be watched. It returns the reason.
func (r *Runner) runWithLock(ctx context.Context, lock *appcontext.Lock) error {
	workCtx, cancel := context.WithCancelCause(ctx)
	defer r.releaseLock(lock) //nolint:contextcheck // Also when ctx has ended.
	go func() {
		select {
		case <-lock.Lost():
			cancel(errLockLost)
		case <-workCtx.Done():
		}
	}()
	ws := &workers{all: map[string]*worker{}, start: func(statusID string) *worker {
		return &worker{Runner: r, statusID: statusID, lock: lock, cancelAll: cancel, wakeup: make(chan struct{}, 1), contexts: sets.New[string]()}
	}}
	defer ws.running.Wait()
	defer cancel(nil)
	if lock.Abandoned && !r.pause(workCtx, handoverDelay) {
		return context.Cause(workCtx)
	}
	err := r.retryOnOutage(workCtx, func() error { return r.clearStandingDown(workCtx, appcontext.Condition{Lock: lock}) })
	if err != nil {
		return errors.Wrap(err, "cannot take back that nothing is deployed")
	}
	retries, err := r.options.Store.ListSidecars(workCtx, deploy.RetriesHandle)
	if err != nil {
		return errors.Wrap(err, "cannot read which events are to be handled again")
	}
	for id := range retries {
		r.wake(workCtx, ws, lock, id)
	}
	err = r.options.Store.WatchActive(workCtx, func(id string) { r.wake(workCtx, ws, lock, id) })
	if workCtx.Err() != nil {
		return context.Cause(workCtx)
	}
	return err
}

// clearStandingDown deletes the reason why a program stood down from etcd, because that program has ended.
func (r *Runner) clearStandingDown(ctx context.Context, c appcontext.Condition) error {
	return r.options.Store.WriteLevels(ctx, "", []appcontext.Write{{Handle: deploy.StandingDownHandle, Sidecar: true}}, c)
}

// wake wakes the worker of the deployment to which a context belongs.
func (r *Runner) wake(ctx context.Context, ws *workers, lock *appcontext.Lock, id string) {
	statusID := ""
	err := r.retryOnOutage(ctx, func() error {
		s, err := r.options.Store.Snapshot(ctx, id, "statusappctxid")
		if err == nil {
			statusID, err = s.StatusContextID()
		}
		return err
	})
	switch {
	case err == nil:
		ws.wake(ctx, statusID, id)
	case errors.Is(err, appcontext.ErrNotFound):
		r.logger.Info("The context is gone; nothing is done with it", "context", id)
		_ = r.retryOnOutage(ctx, func() error { return removeActive(ctx, r.options.Store, id, lock) }) // The next start does so again.
	case ctx.Err() == nil:
		r.logger.Error(err, "Cannot read where the states of a context are kept", "context", id)
	}
}

// removeActive removes a deleted context from the active contexts, and deletes its retry.
func removeActive(ctx context.Context, store *appcontext.Store, id string, lock *appcontext.Lock) error {
	active := appcontext.ActiveHandle(id)
	err := store.WriteLevels(ctx, "", []appcontext.Write{{Handle: active}, {Handle: active, Sidecar: true}}, appcontext.Condition{Lock: lock})
	return errors.Wrapf(err, "cannot remove context %q from the active ones", id)
}

// retryOnOutage calls f until etcd responds. It also retries a conflict, after conflictRetry: if the conflict means that the lock
// is lost, ctx ends soon.
func (r *Runner) retryOnOutage(ctx context.Context, f func() error) error {
	for {
		err := f()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, appcontext.ErrConflict):
			if !r.pause(ctx, conflictRetry) {
				return err
			}
		case isOutage(err):
			if !r.pause(ctx, etcdRetry) {
				return err
			}
		default:
			return err
		}
	}
}

// isOutage reports whether a request to etcd must be retried, because etcd is unavailable, denies access or is full.
func isOutage(err error) bool {
	return errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, appcontext.ErrDenied) || errors.Is(err, appcontext.ErrNoSpace)
}

// errLockLost means that the lock is lost, so another program may hold it.
var errLockLost = errors.New("the lock in etcd is lost")

func (r *Runner) releaseLock(lock *appcontext.Lock) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = lock.Release() // Release has a timeout of its own.
	}()
	select {
	case <-done:
	case <-r.options.Clock.After(releaseTimeout):
	}
}

// pause waits for d, and reports whether it did so; false means that ctx has ended.
func (r *Runner) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.options.Clock.After(d):
		return true
	}
}

// workers holds at most one worker for each deployment, by the id of its status context.
type workers struct {
	start   func(id string) *worker
	running sync.WaitGroup

	mu  sync.Mutex
	all map[string]*worker
}

// wake wakes the worker of a deployment for a context, or starts one. It does not block.
func (ws *workers) wake(ctx context.Context, statusID, id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, isRunning := ws.all[statusID]
	if !isRunning {
		w = ws.start(statusID)
		ws.all[statusID] = w
		ws.running.Go(func() {
			for !ws.removeIfIdle(ctx, w) {
				w.run(ctx)
			}
		})
	}
	w.wake(id)
}

// removeIfIdle removes a worker unless it was woken meanwhile, and reports whether it did. After the end of ctx, it removes the
// worker in any case.
func (ws *workers) removeIfIdle(ctx context.Context, w *worker) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	select {
	case <-w.wakeup:
		if ctx.Err() == nil {
			return false
		}
	default:
	}
	delete(ws.all, w.statusID)
	return true
}
