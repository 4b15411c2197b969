package rsync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// ProblemHandle returns the handle of the sidecar that holds the problem of the last event of a context, if it is not recorded with
// a resource.
func ProblemHandle(id string) appcontext.Handle {
	return appcontext.ContextHandle(id).Level("app/rsync")
}

// WaitReasonHandle returns the handle below which sidecars hold the reasons why the dependencies of an app are not Ready, by the
// name of the dependency.
func WaitReasonHandle(id, app string) appcontext.Handle {
	return appcontext.ContextHandle(id).Level("app/" + app + "/instruction/dependency")
}

// worker handles the events of one deployment: of the contexts that have the same status context.
type worker struct {
	*Runner

	statusID string
	lock     *appcontext.Lock
	// cancelAll ends all workers.
	cancelAll context.CancelCauseFunc

	// wakeup holds a token when there may be changes that the worker has not read.
	wakeup chan struct{}
	mu     sync.Mutex
	// contexts are the contexts that may have work.
	contexts sets.Set[string]
}

// wake wakes the worker to read the work of a context. It does not block.
func (w *worker) wake(id string) {
	w.add(id)
	select {
	case w.wakeup <- struct{}{}:
	default: // The worker has not read yet since it was woken the last time.
	}
}

// add records that a context may have work.
func (w *worker) add(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.contexts.Insert(id)
}

// run handles events until none is left, or ctx ends. It adds all contexts of the deployment first, because the event of another
// context may come before that of the context that woke it.
func (w *worker) run(ctx context.Context) {
	if members, err := w.listMembers(ctx); err == nil { // Otherwise each context is added when it wakes the worker.
		for id := range members {
			w.add(id)
		}
	}
	for ctx.Err() == nil {
		handled, err := w.handleNext(ctx)
		if err != nil && ctx.Err() == nil {
			w.logger.Error(err, "Cannot handle an event", "deployment", w.statusID)
		}
		if !handled {
			return
		}
	}
}

// handleNext handles the next event, and reports whether there was one.
func (w *worker) handleNext(ctx context.Context) (bool, error) {
	id := w.readDeployment(ctx).Next()
	if id == "" {
		return w.awaitRetry(ctx)
	}
	t, err := w.beginNext(ctx, id)
	if err != nil || t.event.Event == "" {
		return true, w.dropOnError(err, id)
	}
	logger := w.logger.WithValues("context", id, "event", t.event.Event)
	logger.Info("Handling an event", "again", t.isRetry())
	succeeded, retry := w.handle(ctx, t)
	if ctx.Err() != nil {
		return true, ctx.Err() // The remaining work is in etcd.
	}
	err = w.finish(ctx, t, succeeded, retry)
	w.counters.countEvent(t.event.Event, succeeded)
	logger.Info("Handled an event", "succeeded", succeeded, "problem", err)
	return true, w.dropOnError(err, id)
}

// task is an event of a context that is being handled.
type task struct {
	id    string
	event deploy.QueuedEvent
	// retry has the Event and its Index in the queue. The other fields are zero when the event is handled for the first time.
	retry deploy.Retry
}

func (t task) isRetry() bool { return t.retry.Begun != 0 }

// dropOnError drops a context if its event could not be begun or finished, so that the others continue.
func (w *worker) dropOnError(err error, id string) error {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.contexts.Delete(id)
	}
	return err
}

// readDeployment reads the lifecycles of the contexts that have work, and drops the others.
func (w *worker) readDeployment(ctx context.Context) deploy.Deployment {
	w.mu.Lock()
	ids := sets.List(w.contexts)
	w.contexts.Clear() // A context that is woken meanwhile is added again.
	w.mu.Unlock()
	var d deploy.Deployment
	for _, id := range ids {
		m, err := w.readMember(ctx, id)
		switch {
		case errors.Is(err, appcontext.ErrNotFound):
			w.logger.Info("The context is gone; nothing is done with it", "context", id)
			_ = w.retryOnOutage(ctx, func() error { return removeActive(ctx, w.options.Store, id, w.lock) }) // The next start does so again.
		case err != nil && ctx.Err() == nil:
			w.logger.Error(err, "Cannot read what is to be done with a context", "context", id)
		case err == nil && m.Active():
			d = append(d, m)
		}
	}
	for _, m := range d {
		w.add(m.ID)
	}
	return d
}

// readMember reads the lifecycle of a context. If another program has written its queue since the lock was taken, all workers end.
func (w *worker) readMember(ctx context.Context, id string) (m deploy.Member, err error) {
	err = w.retryOnOutage(ctx, func() error {
		s, err := w.options.Store.Snapshot(ctx, id, deploy.LifecycleLevels()...)
		if err != nil {
			return err
		}
		l, err := deploy.ReadLifecycle(s)
		m = deploy.Member{ID: id, Lifecycle: l, Revision: deploy.Revision(s)}
		return err
	})
	if err == nil && m.Revision > w.lock.Revision {
		err = w.checkWriter(ctx, id)
	}
	return m, err
}

// checkWriter fails, and ends all workers, if the last write of the queue of a context was by another program.
func (w *worker) checkWriter(ctx context.Context, id string) error {
	var queue, own int64
	err := w.retryOnOutage(ctx, func() (err error) {
		queue, own, err = w.options.Store.Revisions(ctx, deploy.QueueHandle(id))
		return err
	})
	if err == nil && queue != own {
		err = &otherWriterError{id}
		_ = w.write(ctx, "", []appcontext.Write{{Handle: deploy.StandingDownHandle, Sidecar: true, Value: err.Error()}}) // It is logged too.
		w.cancelAll(err)
	}
	return err
}

// otherWriterError means that EMCO's rsync, or another program, works on the same etcd.
type otherWriterError struct{ context string }

// Error implements error.
func (e *otherWriterError) Error() string {
	return fmt.Sprintf("the queue of context %q was written by another program, such as EMCO's rsync: two must not work on one etcd", e.context)
}

// listMembers returns the contexts of the deployment.
func (w *worker) listMembers(ctx context.Context) (members map[string]string, err error) {
	err = w.retryOnOutage(ctx, func() error {
		members, err = w.options.Store.ListSidecars(ctx, deploy.MembersHandle(w.statusID))
		return err
	})
	if err == nil {
		members[w.statusID] = w.statusID
	}
	return members, err
}

// wantedMembers returns the other contexts of the deployment that are to be deployed.
func (w *worker) wantedMembers(ctx context.Context, id string) ([]string, error) {
	members, err := w.listMembers(ctx)
	if err != nil {
		return nil, err
	}
	delete(members, id)
	var wanted []string
	for _, other := range slices.Sorted(maps.Keys(members)) {
		m, err := w.readMember(ctx, other)
		if err != nil && !errors.Is(err, appcontext.ErrNotFound) {
			return nil, err
		}
		if m.Wanted() {
			wanted = append(wanted, other)
		}
	}
	return wanted, nil
}

// beginNext begins the next event of a context and returns it; empty when there is none.
func (w *worker) beginNext(ctx context.Context, id string) (task, error) {
	t := task{id: id}
	c := lifecycleChange{lock: w.lock, edits: []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) {
		next, begun, _ := l.Next()
		t.event, t.retry = begun, deploy.Retry{Event: begun.Event, Index: next.PendingIndex()}
		return next, nil
	}}}}
	err := w.retryOnOutage(ctx, func() error { return c.commit(ctx, w.options.Store) })
	if err != nil || t.event.Event == "" {
		return t, err
	}
	var value string
	err = w.retryOnOutage(ctx, func() (err error) {
		value, err = w.options.Store.Sidecar(ctx, deploy.RetriesHandle.Level(id))
		return err
	})
	if r, malformed := deploy.ReadRetry(value); malformed == nil && r.Index == t.retry.Index {
		t.retry = r
	}
	return t, err
}

// write stores results of a context's event while the lock is held. If the lock is lost, it returns errLockLost. Another program
// may hold the lock then, so the worker must not act in clusters any more.
func (w *worker) write(ctx context.Context, id string, writes []appcontext.Write) error {
	return w.retryOnOutage(ctx, func() error {
		err := w.options.Store.WriteLevels(ctx, id, writes, appcontext.Condition{Lock: w.lock})
		if errors.Is(err, appcontext.ErrConflict) {
			return errLockLost
		}
		return err
	})
}

// handle does the work of an event, and reports whether all of it was acknowledged. If clusters have refused steps, it also returns
// the retry. An EventUpdateDelete that has not succeeded is always retried, because the termination of another context may have
// interrupted it.
func (w *worker) handle(ctx context.Context, t task) (bool, deploy.Retry) {
	plan, progress, err := w.plan(ctx, t)
	problem := appcontext.Write{Handle: ProblemHandle(t.id), Sidecar: true}
	if err != nil {
		problem.Value = err.Error()
	}
	if failed := w.write(ctx, t.id, []appcontext.Write{problem}); err != nil || failed != nil {
		return false, deploy.Retry{}
	}
	succeeded := w.execute(ctx, t, plan, progress)
	if succeeded || !progress.Refused() && t.event.Event != deploy.EventUpdateDelete {
		return succeeded, deploy.Retry{}
	}
	return false, deploy.Retry{
		Event: t.retry.Event, Index: t.retry.Index, Begun: plan.BeginRevision(), Count: t.retry.Count + 1, Next: w.options.Clock.Now().Add(w.retryPause(t.retry.Count)),
	}
}

// plan returns the plan of an event, and the steps to take.
func (w *worker) plan(ctx context.Context, t task) (*deploy.Plan, *deploy.Progress, error) {
	contexts, err := w.readContexts(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	plan, err := contexts.Plan()
	if err != nil {
		return nil, nil, err
	}
	plan.DeletionOrder = w.options.DeletionOrder
	switch t.event.Event {
	case deploy.EventInstantiate:
		return plan, plan.Instantiation(), nil
	case deploy.EventTerminate:
		return plan, plan.Termination(), nil
	case deploy.EventUpdate:
		return plan, plan.Update(), nil
	case deploy.EventUpdateDelete:
		return plan, plan.Removal(), nil
	case deploy.EventRead:
		return plan, plan.Reading(), nil
	default:
		return nil, nil, errors.Errorf("event %q is %w", t.event.Event, deploy.ErrUnsupported)
	}
}

// readContexts reads the contexts that the plan of an event needs.
func (w *worker) readContexts(ctx context.Context, t task) (c deploy.Contexts, err error) {
	c.Retry = t.retry
	if c.Acted, err = w.snapshot(ctx, t.id); err != nil {
		return c, err
	}
	if c.Status = c.Acted; w.statusID != t.id {
		if c.Status, err = w.snapshot(ctx, w.statusID); err != nil {
			return c, errors.Wrap(err, "cannot read where states are kept")
		}
	}
	var others []string
	switch t.event.Event {
	case deploy.EventUpdate:
		others = []string{t.event.UpdateContextID}
	case deploy.EventUpdateDelete, deploy.EventTerminate:
		if others, err = w.wantedMembers(ctx, t.id); err != nil {
			return c, errors.Wrap(err, "cannot read which contexts of the deployment are to be there")
		}
	default:
	}
	for _, other := range others {
		s, err := w.snapshot(ctx, other)
		if err != nil {
			return c, errors.Wrap(err, "cannot read another context of the deployment")
		}
		c.Others = append(c.Others, s)
	}
	return c, nil
}

func (w *worker) snapshot(ctx context.Context, id string) (s *appcontext.Snapshot, err error) {
	err = w.retryOnOutage(ctx, func() error {
		s, err = w.options.Store.Snapshot(ctx, id)
		return err
	})
	return s, err
}

// finish ends an event. After a successful update, it adds events that delete the resources of other contexts of the deployment
// that this one lacks. It adds them in the same transaction, so that a program that is killed leaves no update half done.
func (w *worker) finish(ctx context.Context, t task, succeeded bool, retry deploy.Retry) error {
	c := lifecycleChange{lock: w.lock, writes: []appcontext.Write{retry.Write(t.id)}}
	c.edits = []edit{{t.id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Finish(succeeded), nil }}}
	if succeeded {
		c.writes = append(c.writes, appcontext.Write{Handle: ProblemHandle(t.id), Sidecar: true})
	}
	if t.event.Event.Deploys() {
		others, err := w.readRetries(ctx)
		if err != nil {
			return err
		}
		for other, r := range others {
			if other != t.id && r.Event.Deploys() { // This event replaces the other one.
				c.writes = append(c.writes, deploy.Retry{}.Write(other))
			}
		}
	}
	if t.event.Event == deploy.EventUpdate && succeeded {
		others, err := w.wantedMembers(ctx, t.id)
		if err != nil {
			return err
		}
		for _, other := range others {
			c.edits = append(c.edits, edit{other, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.ReplacedBy(t.id), nil }})
		}
	}
	return w.retryOnOutage(ctx, func() error { return c.commit(ctx, w.options.Store) })
}

// execute takes steps until none can be taken, the event is interrupted, or ctx ends, and reports whether all were acknowledged.
// When it returns, no step is running, and the results are in etcd unless a write has failed.
func (w *worker) execute(ctx context.Context, t task, plan *deploy.Plan, progress *deploy.Progress) bool {
	stepCtx, cancel := context.WithCancel(ctx)
	j := openJournal(func(writes []appcontext.Write) error { return w.write(ctx, plan.ID, writes) }, cancel)
	done := w.runSteps(stepCtx, t, newExecutor(w, plan, j), progress, cancel)
	if err := j.close(); err != nil {
		w.logger.Error(err, "Cannot record what was done", "context", plan.ID)
		return false
	}
	return done
}

// runSteps takes the steps of progress. No step is running when it returns. Refused steps are retried while other steps are in
// progress.
func (w *worker) runSteps(ctx context.Context, t task, e *executor, progress *deploy.Progress, cancel func()) bool {
	type result struct {
		step    deploy.Step
		outcome deploy.Outcome
	}
	results := make(chan result)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { w.watchLifecycle(ctx, t.id) })
	var retry <-chan time.Time
	for inFlight, retries := 0, t.retry.Count; ; {
		for _, s := range progress.Take() {
			inFlight++
			running.Go(func() {
				outcome, err := e.take(ctx, s)
				if err != nil {
					cancel() // Results cannot be recorded, so no more steps may be taken.
					return
				}
				select {
				case results <- result{s, outcome}:
				case <-ctx.Done():
				}
			})
		}
		if inFlight == 0 {
			return progress.Done()
		}
		select {
		case r := <-results:
			inFlight--
			progress.Complete(r.step, r.outcome)
			if r.outcome == deploy.Refused && retry == nil {
				retry = w.options.Clock.After(w.retryPause(retries))
				retries++
			}
		case <-retry:
			retry = nil
			progress.Retry()
		case <-w.wakeup:
			if w.isInterrupted(ctx, t) {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// isInterrupted reports whether an event must end before its work is done. A retry ends when another event of the deployment is
// pending.
func (w *worker) isInterrupted(ctx context.Context, t task) bool {
	d := w.readDeployment(ctx)
	return d.Interrupted(t.id) || t.isRetry() && d.Superseded(t.id)
}

// watchLifecycle wakes the worker after each change, or possible change, of the lifecycle of a context, until ctx ends.
func (w *worker) watchLifecycle(ctx context.Context, id string) {
	for {
		err := w.options.Store.WatchLevels(ctx, id, deploy.LifecycleLevels(), func() { w.wake(id) })
		if !w.pause(ctx, etcdRetry) {
			return
		}
		w.logger.V(1).Info("Cannot follow a context; retrying", "context", id, "cause", err.Error())
	}
}
