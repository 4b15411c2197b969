package rsync

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// session is what a Runner does from when it takes the lock until the lock is lost. It reads and writes etcd for its workers: each
// request is repeated until etcd responds.
type session struct {
	*Runner

	lock *appcontext.Lock
	// cancel ends the session.
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu sync.Mutex
	// workers holds at most one worker for each deployment, by the id of its status context.
	workers map[string]*worker
}

// run wakes the workers of contexts that have work, until ctx ends or etcd cannot be watched.
func (s *session) run(ctx context.Context) error {
	err := s.retryOnOutage(ctx, func() error { // The program that stood down has ended.
		return s.options.Store.WriteLevels(ctx, "", standingDown(nil), appcontext.Condition{Lock: s.lock})
	})
	if err != nil {
		return errors.Wrap(err, "cannot take back that nothing is deployed")
	}
	retries, err := s.options.Store.ListSidecars(ctx, deploy.RetriesHandle)
	if err != nil {
		return errors.Wrap(err, "cannot read which events are to be handled again")
	}
	for id := range retries {
		s.wakeWorker(ctx, id)
	}
	return s.options.Store.WatchActive(ctx, func(id string) { s.wakeWorker(ctx, id) })
}

// wakeWorker wakes the worker of the deployment to which a context belongs, or starts one.
func (s *session) wakeWorker(ctx context.Context, id string) {
	snapshot, err := s.snapshot(ctx, id, "statusappctxid")
	statusID := ""
	if err == nil {
		statusID, err = snapshot.StatusContextID()
	}
	switch {
	case errors.Is(err, appcontext.ErrNotFound):
		s.dropAbsent(ctx, id)
		return
	case err != nil && ctx.Err() == nil:
		s.logger.Error(err, "Cannot read where the states of a context are kept", "context", id)
		return
	case err != nil:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w, isRunning := s.workers[statusID]
	if !isRunning {
		w = &worker{session: s, statusID: statusID, wakeup: make(chan struct{}, 1), contexts: sets.New[string]()}
		s.workers[statusID] = w
		s.running.Go(func() {
			for !s.removeIfIdle(ctx, w) {
				w.run(ctx)
			}
		})
	}
	w.wake(id)
}

// removeIfIdle removes a worker unless it was woken meanwhile, and reports whether it did. After the end of ctx, it removes the
// worker in any case.
func (s *session) removeIfIdle(ctx context.Context, w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.wakeup:
		if ctx.Err() == nil {
			return false
		}
	default:
	}
	delete(s.workers, w.statusID)
	return true
}

// snapshot reads levels of a context; all without levels.
func (s *session) snapshot(ctx context.Context, id string, levels ...string) (snapshot *appcontext.Snapshot, err error) {
	err = s.retryOnOutage(ctx, func() error {
		snapshot, err = s.options.Store.Snapshot(ctx, id, levels...)
		return err
	})
	return snapshot, err
}

// listSidecars reads the sidecars below a handle.
func (s *session) listSidecars(ctx context.Context, h appcontext.Handle) (values map[string]string, err error) {
	err = s.retryOnOutage(ctx, func() error {
		values, err = s.options.Store.ListSidecars(ctx, h)
		return err
	})
	return values, err
}

// commit changes lifecycles while the lock is held.
func (s *session) commit(ctx context.Context, c lifecycleChange) error {
	c.lock = s.lock
	return s.retryOnOutage(ctx, func() error { return c.commit(ctx, s.options.Store) })
}

// write stores results of a context's event while the lock is held. If the lock is lost, it returns errLockLost. Another program
// may hold the lock then, so the worker must not act in clusters any more.
func (s *session) write(ctx context.Context, id string, writes ...appcontext.Write) error {
	return s.retryOnOutage(ctx, func() error {
		err := s.options.Store.WriteLevels(ctx, id, writes, appcontext.Condition{Lock: s.lock})
		if errors.Is(err, appcontext.ErrConflict) {
			return errLockLost
		}
		return err
	})
}

// dropAbsent removes a deleted context from the active contexts, and deletes its retry.
func (s *session) dropAbsent(ctx context.Context, id string) {
	s.logger.Info("The context is gone; nothing is done with it", "context", id)
	active := appcontext.ActiveHandle(id)
	_ = s.write(ctx, "", appcontext.Write{Handle: active}, appcontext.Write{Handle: active, Sidecar: true}) // The next start does so again.
}
