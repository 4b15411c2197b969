package rsync

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
)

const (
	// lockName names the lock in etcd.
	lockName = "rsync"
	// etcdRetry is the pause before etcd is asked again after it was unavailable.
	etcdRetry = 2 * time.Second
	// releaseTimeout is how long the release of the lock may take when the program stops.
	releaseTimeout = 5 * time.Second
)

// Options configure Setup.
type Options struct {
	// Store is the etcd with the AppContexts.
	Store *appcontext.Store
	// Access returns how to reach a cluster; false while there is no connection to it.
	Access func(cluster string) (fleet.Access, bool)
	// Policy and HealthChecks decide when an app that others depend on is Ready.
	Policy       healthscope.Policy
	HealthChecks rules.UserRules
	// Retry is how long a step waits before it is taken again in a cluster that did not answer. The default is DefaultRetry.
	Retry wait.Backoff
	// HookTimeout is how long an object of a hook may take until it has done its work. The default is DefaultHookTimeout.
	HookTimeout time.Duration
	// Clock is the clock. The default is the machine's.
	Clock clock.WithTicker
	// Logger is where the runner logs to.
	Logger logr.Logger
}

// DefaultRetry begins with the pause of EMCO's rsync, and ends with half a minute.
var DefaultRetry = wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second}

// DefaultHookTimeout is generous: a Job says itself with activeDeadlineSeconds how long it may take.
const DefaultHookTimeout = time.Hour

// Setup adds to a manager what deploys contexts. It runs on the replica that leads.
func Setup(mgr ctrl.Manager, o Options) error {
	return errors.Wrap(mgr.Add(NewRunner(o)), "cannot add rsync")
}

// Runner deploys contexts while it holds the lock.
type Runner struct {
	options  Options
	clusters *clusters
	logger   logr.Logger
}

// NewRunner returns a runner. Start must run.
func NewRunner(o Options) *Runner {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Retry.Duration == 0 {
		o.Retry = DefaultRetry
	}
	if o.HookTimeout == 0 {
		o.HookTimeout = DefaultHookTimeout
	}
	return &Runner{options: o, clusters: newClusters(o.Access), logger: o.Logger}
}

// Start works until ctx ends. It returns nil then. Whenever the lock is lost it begins again with what etcd holds.
func (r *Runner) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		lock, err := r.options.Store.Lock(ctx, lockName)
		if err == nil {
			r.logger.Info("Deploying contexts")
			err = r.hold(ctx, lock)
		}
		if ctx.Err() == nil {
			r.logger.Info("Not deploying contexts; retrying", "problem", err.Error())
			r.pause(ctx, etcdRetry)
		}
	}
	return nil
}

// hold works until the lock is lost or etcd cannot be watched, and returns why.
func (r *Runner) hold(ctx context.Context, lock *appcontext.Lock) error {
	working, cancel := context.WithCancelCause(ctx)
	defer r.release(lock)
	go func() {
		select {
		case <-lock.Lost():
			cancel(errLockLost)
		case <-working.Done():
		}
	}()
	turns := &turns{}
	workers := &workers{run: func(id string) { (&worker{Runner: r, id: id, lock: lock, turns: turns}).run(working) }}
	defer workers.running.Wait()
	defer cancel(nil)
	return r.options.Store.WatchActive(working, workers.wake)
}

// errLockLost means that another program may be at work.
var errLockLost = errors.New("the lock in etcd is lost")

func (r *Runner) release(lock *appcontext.Lock) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = lock.Release() // It ends by itself.
	}()
	select {
	case <-done:
	case <-r.options.Clock.After(releaseTimeout):
	}
}

// pause waits, and reports whether ctx has not ended meanwhile.
func (r *Runner) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.options.Clock.After(d):
		return true
	}
}

// workers has one worker at most for each context.
type workers struct {
	run     func(id string)
	running sync.WaitGroup

	mu sync.Mutex
	// awake has an entry for each worker, true if there may be something that it has not read yet.
	awake map[string]bool
}

// wake lets the worker of a context read what is to be done. It does not block.
func (w *workers) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awake == nil {
		w.awake = map[string]bool{}
	}
	if _, exists := w.awake[id]; exists {
		w.awake[id] = true
		return
	}
	w.awake[id] = true
	w.running.Go(func() {
		for w.next(id) {
			w.run(id)
		}
	})
}

// next reports whether a worker has to run again; if not, it is gone.
func (w *workers) next(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awake[id] {
		w.awake[id] = false
		return true
	}
	delete(w.awake, id)
	return false
}

// turns lets one event at a time be handled of contexts that keep the states of resources in one place: they have resources
// in common.
type turns struct {
	mu sync.Mutex
	// taken has an entry for each place where a turn is taken. It is closed when the turn ends.
	taken map[string]chan struct{}
}

// take waits for a turn and returns what ends it.
func (t *turns) take(ctx context.Context, place string) (end func(), err error) {
	for {
		mine := make(chan struct{})
		t.mu.Lock()
		before, isTaken := t.taken[place]
		if !isTaken {
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			t.taken[place] = mine
		}
		t.mu.Unlock()
		if !isTaken {
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.taken, place)
				close(mine)
			}, nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
