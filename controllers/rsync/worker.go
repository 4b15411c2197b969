package rsync

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// ProblemHandle returns the handle beside which the reason is kept why the last event of a context failed as a whole.
func ProblemHandle(id string) appcontext.Handle {
	return appcontext.ContextHandle(id).Level("app/rsync")
}

// worker handles the events of one context.
type worker struct {
	*Runner

	id   string
	lock *appcontext.Lock
	// turns are those of all workers.
	turns *turns
}

// run handles events until none is left, the context is gone, or ctx ends.
func (w *worker) run(ctx context.Context) {
	logger := w.logger.WithValues("context", w.id)
	for ctx.Err() == nil {
		event, err := w.handleNext(ctx)
		switch {
		case errors.Is(err, appcontext.ErrNotFound):
			logger.Info("The context is gone; nothing is done with it")
			_ = w.persist(ctx, func() error { return w.options.Store.RemoveActive(ctx, w.id, w.lock) }) // The next start does so again.
			return
		case err != nil:
			if ctx.Err() == nil {
				logger.Error(err, "Cannot handle the events of a context")
			}
			return
		case event.Event == "":
			return
		}
	}
}

// handleNext handles the next event, when it is the turn of this context, and returns it; empty when there is none.
func (w *worker) handleNext(ctx context.Context) (deploy.QueuedEvent, error) {
	var place string
	err := w.persist(ctx, func() error {
		s, err := w.options.Store.ReadLevels(ctx, w.id, "statusappctxid")
		if err == nil {
			place, err = s.StatusContextID()
		}
		return err
	})
	if err != nil {
		return deploy.QueuedEvent{}, err
	}
	end, err := w.turns.take(ctx, place)
	if err != nil {
		return deploy.QueuedEvent{}, err
	}
	defer end()
	event, err := w.begin(ctx)
	if err != nil || event.Event == "" {
		return event, err
	}
	logger := w.logger.WithValues("context", w.id, "event", event.Event)
	logger.Info("Handling an event")
	succeeded := w.handle(ctx, event)
	if ctx.Err() != nil {
		return event, ctx.Err() // What is left to do is in etcd.
	}
	err = w.finish(ctx, event, succeeded)
	logger.Info("Handled an event", "succeeded", succeeded, "problem", err)
	return event, err
}

// begin begins the next event and returns it; empty when there is none.
func (w *worker) begin(ctx context.Context) (event deploy.QueuedEvent, err error) {
	err = w.change(ctx, func(l deploy.Lifecycle) deploy.Lifecycle {
		next, begun, _ := l.Next()
		event = begun
		return next
	})
	return event, err
}

// change replaces the lifecycle by what is made of it, in one transaction, and again when it was changed meanwhile.
func (w *worker) change(ctx context.Context, next func(deploy.Lifecycle) deploy.Lifecycle) error {
	c := lifecycleChange{lock: w.lock, edits: []edit{{w.id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return next(l), nil }}}}
	return w.persist(ctx, func() error { return c.commit(ctx, w.options.Store) })
}

// write stores what the work has come to, as long as the lock is held.
func (w *worker) write(ctx context.Context, writes []appcontext.Write) error {
	return w.persist(ctx, func() error {
		return w.options.Store.WriteLevels(ctx, w.id, writes, appcontext.Condition{Lock: w.lock})
	})
}

// persist calls f until etcd has answered. A conflict is tried again at once: of a lock that is lost, ctx tells soon.
func (w *worker) persist(ctx context.Context, f func() error) error {
	for {
		err := f()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, appcontext.ErrConflict):
			if !w.pause(ctx, conflictRetry) {
				return err
			}
		case isOutage(err):
			if !w.pause(ctx, etcdRetry) {
				return err
			}
		default:
			return err
		}
	}
}

// isOutage reports whether etcd is to be asked again.
func isOutage(err error) bool {
	return errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, appcontext.ErrDenied) || errors.Is(err, appcontext.ErrNoSpace)
}

// handle does the work of an event, and reports whether all of it was acknowledged.
func (w *worker) handle(ctx context.Context, event deploy.QueuedEvent) bool {
	plan, progress, err := w.plan(ctx, event)
	problem := appcontext.Write{Handle: ProblemHandle(w.id), Own: true}
	if err != nil {
		problem.Value = err.Error()
	}
	if failed := w.write(ctx, []appcontext.Write{problem}); err != nil || failed != nil {
		return false
	}
	return w.work(ctx, plan, progress)
}

// plan returns what the work of an event is.
func (w *worker) plan(ctx context.Context, event deploy.QueuedEvent) (*deploy.Plan, *deploy.Progress, error) {
	var contexts deploy.Contexts
	err := w.persist(ctx, func() (err error) {
		contexts, err = w.read(ctx, event)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	plan, err := contexts.Plan()
	if err != nil {
		return nil, nil, err
	}
	switch event.Event {
	case deploy.EventInstantiate:
		return plan, plan.Instantiation(), nil
	case deploy.EventTerminate:
		return plan, plan.Termination(), nil
	case deploy.EventUpdate:
		return plan, plan.Update(), nil
	case deploy.EventUpdateDelete:
		after, err := deploy.NewPlan(contexts.Other)
		if err != nil {
			return nil, nil, errors.Wrapf(err, "cannot plan context %q, which comes after", event.UpdateContextID)
		}
		return plan, plan.Removal(after), nil
	default:
		return nil, nil, errors.Errorf("event %q is %w", event.Event, deploy.ErrUnsupported)
	}
}

// read reads the contexts that an event is about.
func (w *worker) read(ctx context.Context, event deploy.QueuedEvent) (c deploy.Contexts, err error) {
	if c.Acted, err = w.options.Store.Snapshot(ctx, w.id); err != nil {
		return c, err
	}
	statusID, err := c.Acted.StatusContextID()
	if err != nil {
		return c, err
	}
	if c.Status = c.Acted; statusID != w.id {
		if c.Status, err = w.options.Store.Snapshot(ctx, statusID); err != nil {
			return c, errors.Wrap(err, "cannot read where states are kept")
		}
	}
	if event.UpdateContextID != "" {
		c.Other, err = w.options.Store.Snapshot(ctx, event.UpdateContextID)
		err = errors.Wrap(err, "cannot read the other context of the update")
	}
	return c, err
}

// finish ends an event. An update that has succeeded has what the context before it has and this one lacks deleted, in the
// same transaction: a program that is killed leaves no update half done.
func (w *worker) finish(ctx context.Context, event deploy.QueuedEvent, succeeded bool) error {
	c := lifecycleChange{lock: w.lock, edits: []edit{{w.id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Finish(succeeded), nil }}}}
	alone := c
	if event.Event == deploy.EventUpdate && succeeded {
		c.edits = append(c.edits, edit{event.UpdateContextID, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Replaced(w.id), nil }})
	}
	err := w.persist(ctx, func() error { return c.commit(ctx, w.options.Store) })
	if len(c.edits) > 1 && errors.Is(err, appcontext.ErrNotFound) { // The context before was deleted meanwhile.
		err = w.persist(ctx, func() error { return alone.commit(ctx, w.options.Store) })
	}
	return err
}

// work takes steps until none can be taken, the event is interrupted, or ctx ends, and reports whether all were
// acknowledged. No step runs any more when it returns.
func (w *worker) work(ctx context.Context, plan *deploy.Plan, progress *deploy.Progress) bool {
	ctx, cancel := context.WithCancel(ctx)
	e := newExecutor(w, plan)
	type result struct {
		step    deploy.Step
		outcome deploy.Outcome
		err     error
	}
	results := make(chan result)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	running.Go(func() { w.follow(ctx, changed) })
	for inFlight := 0; ; {
		for _, s := range progress.Take() {
			inFlight++
			running.Go(func() {
				outcome, err := e.take(ctx, s)
				select {
				case results <- result{s, outcome, err}:
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
			if r.err != nil { // Nothing can be recorded, so that nothing more may be done.
				w.logger.Error(r.err, "Cannot record what was done", "context", w.id)
				return false
			}
			progress.Complete(r.step, r.outcome)
		case <-changed:
			if w.interrupted(ctx) {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// follow sends something whenever the lifecycle of the context has changed, or may have, until ctx ends.
func (w *worker) follow(ctx context.Context, changed chan<- struct{}) {
	for {
		err := w.options.Store.WatchLevels(ctx, w.id, deploy.LifecycleLevels(), func() {
			select {
			case changed <- struct{}{}:
			default: // It has not been read since it changed before.
			}
		})
		if !w.pause(ctx, etcdRetry) {
			return
		}
		w.logger.V(1).Info("Cannot follow a context; retrying", "context", w.id, "cause", err.Error())
	}
}

// interrupted reports whether the event that is being handled is to end: its context is gone, or says so.
func (w *worker) interrupted(ctx context.Context) bool {
	var l deploy.Lifecycle
	err := w.persist(ctx, func() error {
		s, err := w.options.Store.ReadLevels(ctx, w.id, deploy.LifecycleLevels()...)
		if err == nil {
			l, err = deploy.ReadLifecycle(s)
		}
		return err
	})
	return errors.Is(err, appcontext.ErrNotFound) || err == nil && l.Interrupted()
}
