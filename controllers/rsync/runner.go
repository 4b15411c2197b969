package rsync

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
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
	// events and answers count the handled events, and the answers of clusters.
	events, answers *prometheus.CounterVec
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
	o.HookTimeout = cmp.Or(o.HookTimeout, DefaultHookTimeout)
	return &Runner{options: o, clusters: newClusters(o.Access), logger: o.Logger, events: metricEvents.NewCounterVec(), answers: metricAnswers.NewCounterVec()}
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
		if is[*otherWriterError](err) {
			r.standingDown.Store(true)
			r.logger.Error(err, "Not deploying contexts until this program is started again; stop EMCO's rsync, or set rsync.enabled to false")
			<-ctx.Done()
			clearCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			_ = r.options.Store.WriteLevels(clearCtx, "", standingDown(nil), appcontext.Condition{}) // The next start does so too.
			return nil
		}
		if ctx.Err() == nil {
			r.logger.Info("Not deploying contexts; retrying", "problem", err.Error())
			r.pause(ctx, etcdRetry)
		}
	}
	return nil
}

// standingDown returns the write of the reason why a program stands down; nil when it does not, or has ended.
func standingDown(reason any) []appcontext.Write {
	return []appcontext.Write{{Handle: deploy.StandingDownHandle, Sidecar: true, Value: reason}}
}

// runWithLock works until the lock is lost or etcd cannot be watched. It returns the reason.
func (r *Runner) runWithLock(ctx context.Context, lock *appcontext.Lock) error {
	defer r.releaseLock(lock) //nolint:contextcheck // Also when ctx has ended.
	ctx, cancel := context.WithCancelCause(ctx)
	s := &session{Runner: r, lock: lock, cancel: cancel, workers: map[string]*worker{}}
	defer s.running.Wait()
	defer cancel(nil)
	s.running.Go(func() {
		select {
		case <-lock.Lost():
			cancel(errLockLost)
		case <-ctx.Done():
		}
	})
	if lock.Abandoned && !r.pause(ctx, handoverDelay) {
		return context.Cause(ctx)
	}
	err := s.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
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

// retryOnOutage calls f until etcd responds. It also retries a conflict, after conflictRetry: if the conflict means that the lock
// is lost, ctx ends soon.
func (r *Runner) retryOnOutage(ctx context.Context, f func() error) error {
	for {
		err := f()
		pause := etcdRetry
		switch {
		case errors.Is(err, appcontext.ErrConflict):
			pause = conflictRetry
		case errors.Is(err, appcontext.ErrUnavailable), errors.Is(err, appcontext.ErrDenied), errors.Is(err, appcontext.ErrNoSpace):
		default:
			return err
		}
		if ctx.Err() != nil || !r.pause(ctx, pause) {
			return err
		}
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
