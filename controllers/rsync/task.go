package rsync

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// ProblemHandle returns the handle of the sidecar that holds the problem of the last event of a context, if it is not recorded with
// a resource.
func ProblemHandle(id string) appcontext.Handle {
	return appcontext.ContextHandle(id).Level("app/rsync")
}

// task is an event of a context that is being handled.
type task struct {
	*worker

	id    string
	event deploy.QueuedEvent
	// retry has the Event and its Index in the queue. The other fields are zero when the event is handled for the first time.
	retry deploy.Retry

	plan    *deploy.Plan
	objects *objects
	journal *journal

	connectivityMu sync.Mutex
	// connectivity is the connectivity in etcd, by app and cluster.
	connectivity map[[2]string]appcontext.Connectivity
}

func (t *task) isRetry() bool { return t.retry.Begun != 0 }

// handle does the work of an event, and reports whether all of it was acknowledged. If clusters have refused steps, it also returns
// the retry. An EventUpdateDelete that has not succeeded is always retried, because the termination of another context may have
// interrupted it.
func (t *task) handle(ctx context.Context) (bool, deploy.Retry) {
	progress, err := t.prepare(ctx)
	problem := appcontext.Write{Handle: ProblemHandle(t.id), Sidecar: true}
	if err != nil {
		problem.Value = err.Error()
	}
	if failed := t.write(ctx, t.id, problem); err != nil || failed != nil {
		return false, deploy.Retry{}
	}
	succeeded := t.execute(ctx, progress)
	if succeeded || !progress.Refused() && t.event.Event != deploy.EventUpdateDelete {
		return succeeded, deploy.Retry{}
	}
	return false, deploy.Retry{
		Event: t.retry.Event, Index: t.retry.Index, Begun: t.plan.BeginRevision, Count: t.retry.Count + 1, Next: t.options.Clock.Now().Add(t.retryPause(t.retry.Count)),
	}
}

// prepare makes the plan of the event, and returns the steps to take.
func (t *task) prepare(ctx context.Context) (*deploy.Progress, error) {
	contexts, err := t.readContexts(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := contexts.Plan()
	if err != nil {
		return nil, err
	}
	plan.DeletionOrder = t.options.DeletionOrder
	t.plan, t.objects, t.connectivity = plan, newObjects(plan), map[[2]string]appcontext.Connectivity{}
	for _, target := range plan.Targets() {
		t.connectivity[[2]string{target.App, target.Cluster}] = target.Connectivity
	}
	switch t.event.Event {
	case deploy.EventInstantiate:
		return plan.Instantiation(), nil
	case deploy.EventTerminate:
		return plan.Termination(), nil
	case deploy.EventUpdate:
		return plan.Update(), nil
	case deploy.EventUpdateDelete:
		return plan.Removal(), nil
	case deploy.EventRead:
		return plan.Reading(), nil
	default:
		return nil, errors.Errorf("event %q is not supported", t.event.Event)
	}
}

// readContexts reads the contexts that the plan of the event needs.
func (t *task) readContexts(ctx context.Context) (c deploy.Contexts, err error) {
	c.Retry = t.retry
	if c.Acted, err = t.snapshot(ctx, t.id); err != nil {
		return c, err
	}
	if c.Status = c.Acted; t.statusID != t.id {
		if c.Status, err = t.snapshot(ctx, t.statusID); err != nil {
			return c, errors.Wrap(err, "cannot read where states are kept")
		}
	}
	var others []string
	switch t.event.Event {
	case deploy.EventUpdate:
		others = []string{t.event.UpdateContextID}
	case deploy.EventUpdateDelete, deploy.EventTerminate:
		if others, err = t.wantedMembers(ctx, t.id); err != nil {
			return c, errors.Wrap(err, "cannot read which contexts of the deployment are to be there")
		}
	default:
	}
	for _, other := range others {
		s, err := t.snapshot(ctx, other)
		if err != nil {
			return c, errors.Wrap(err, "cannot read another context of the deployment")
		}
		c.Others = append(c.Others, s)
	}
	return c, nil
}

// execute takes steps until none can be taken, the event is interrupted, or ctx ends, and reports whether all were acknowledged.
// When it returns, no step is running, and the results are in etcd unless a write has failed.
func (t *task) execute(ctx context.Context, progress *deploy.Progress) bool {
	t.journal = newJournal(func(writes []appcontext.Write) error { return t.write(ctx, t.plan.ID, writes...) })
	done := t.takeAll(ctx, progress)
	if err := t.journal.err; err != nil {
		t.logger.Error(err, "Cannot record what was done", "context", t.plan.ID)
		return false
	}
	return done
}

// takeAll takes the steps of progress. No step is running when it returns. Refused steps are retried while other steps are in
// progress.
func (t *task) takeAll(ctx context.Context, progress *deploy.Progress) bool {
	type result struct {
		step    deploy.Step
		outcome deploy.Outcome
	}
	results := make(chan result)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() { t.watchLifecycle(ctx) })
	var retry <-chan time.Time
	for inFlight, retries := 0, t.retry.Count; ; {
		for _, s := range progress.Take() {
			inFlight++
			running.Go(func() {
				outcome, err := t.take(ctx, s)
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
			if progress.Refused() && retry == nil { // A retry leaves out what is refused in a sequence that is in progress.
				retry = t.options.Clock.After(t.retryPause(retries))
				retries++
			}
		case <-retry:
			retry = nil
			progress.Retry()
		case <-t.wakeup:
			if t.isInterrupted(ctx) {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// isInterrupted reports whether the event must end before its work is done. A retry ends when another event of the deployment is
// pending.
func (t *task) isInterrupted(ctx context.Context) bool {
	d := t.readDeployment(ctx)
	return d.Interrupted(t.id) || t.isRetry() && d.Superseded(t.id)
}

// watchLifecycle wakes the worker after each change, or possible change, of the lifecycle of the context, until ctx ends.
func (t *task) watchLifecycle(ctx context.Context) {
	for {
		err := t.options.Store.WatchLevels(ctx, t.id, deploy.LifecycleLevels(), func() { t.wake(t.id) })
		if !t.pause(ctx, etcdRetry) {
			return
		}
		t.logger.V(1).Info("Cannot follow a context; retrying", "context", t.id, "cause", err.Error())
	}
}
