package rsync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// DefaultRetryRefused is the backoff of the retries of refused steps. It begins with a minute, and ends with ten minutes.
var DefaultRetryRefused = wait.Backoff{Duration: time.Minute, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 10 * time.Minute}

// worker handles the events of one deployment: of the contexts that have the same status context.
type worker struct {
	*session

	statusID string

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
	for more := true; more && ctx.Err() == nil; {
		var err error
		if id := w.readDeployment(ctx).Next(); id != "" {
			err = w.handleNext(ctx, id)
		} else {
			more, err = w.awaitRetry(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.logger.Error(err, "Cannot handle an event", "deployment", w.statusID)
		}
	}
}

// handleNext handles the next event of a context. It drops a context whose event cannot be begun or finished, so that the others
// continue.
func (w *worker) handleNext(ctx context.Context, id string) error {
	t, err := w.beginNext(ctx, id)
	if err == nil && t.event.Event != "" {
		logger := w.logger.WithValues("context", id, "event", t.event.Event)
		logger.Info("Handling an event", "again", t.isRetry())
		succeeded, retry := t.handle(ctx)
		if ctx.Err() != nil {
			return ctx.Err() // The remaining work is in etcd.
		}
		err = w.finish(ctx, t, succeeded, retry)
		w.countEvent(t.event.Event, succeeded)
		logger.Info("Handled an event", "succeeded", succeeded, "problem", err)
	}
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
			w.dropAbsent(ctx, id)
		case err != nil && ctx.Err() == nil:
			w.logger.Error(err, "Cannot read what is to be done with a context", "context", id)
		case err == nil && m.Active():
			d = append(d, m)
			w.add(id)
		}
	}
	return d
}

// readMember reads the lifecycle of a context. If another program has written its queue since the lock was taken, all workers end.
func (w *worker) readMember(ctx context.Context, id string) (deploy.Member, error) {
	m := deploy.Member{ID: id}
	err := w.retryOnOutage(ctx, func() error {
		l, read, err := readLifecycle(ctx, w.options.Store, id)
		if err == nil {
			m.Lifecycle, m.Revision = l, deploy.Revision(read)
		}
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
		_ = w.write(ctx, "", standingDown(err.Error())...) // It is logged too.
		w.cancel(err)
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
func (w *worker) listMembers(ctx context.Context) (map[string]string, error) {
	members, err := w.listSidecars(ctx, deploy.MembersHandle(w.statusID))
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

// beginNext begins the next event of a context and returns it; without an event when there is none.
func (w *worker) beginNext(ctx context.Context, id string) (*task, error) {
	t := &task{worker: w, id: id}
	err := w.commit(ctx, lifecycleChange{edits: []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) {
		next, begun, _ := l.Next()
		t.event, t.retry = begun, deploy.Retry{Event: begun.Event, Index: next.PendingIndex()}
		return next, nil
	}}}})
	if err != nil || t.event.Event == "" {
		return t, err
	}
	var value string
	err = w.retryOnOutage(ctx, func() (err error) {
		value, err = w.options.Store.Sidecar(ctx, deploy.RetriesHandle.Level(id))
		return err
	})
	if r, malformed := deploy.ReadRetry(value); malformed == nil && r.Event == t.event.Event && r.Index == t.retry.Index {
		t.retry = r
	}
	return t, err
}

// finish ends an event. After a successful update, it adds events that delete the resources of other contexts of the deployment
// that this one lacks. It adds them in the same transaction, so that a program that is killed leaves no update half done.
func (w *worker) finish(ctx context.Context, t *task, succeeded bool, retry deploy.Retry) error {
	c := lifecycleChange{writes: []appcontext.Write{retry.Write(t.id)}}
	c.edits = []edit{{t.id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Finish(succeeded), nil }}}
	if succeeded {
		c.writes = append(c.writes, appcontext.Write{Handle: ProblemHandle(t.id), Sidecar: true})
	}
	if t.event.Event.Deploys() {
		others, err := w.readRetries(ctx)
		if err != nil {
			return err
		}
		for _, other := range slices.Sorted(maps.Keys(others)) {
			if other != t.id && others[other].Event.Deploys() { // This event replaces the other one.
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
	return w.commit(ctx, c)
}

// retryPause returns the pause before the retry of refused steps, after a number of earlier retries.
func (r *Runner) retryPause(retries int) time.Duration {
	backoff := r.options.RetryRefused
	pause := backoff.Step()
	for range min(retries, backoff.Steps) {
		pause = backoff.Step()
	}
	return pause
}

// readRetries returns the pending retries of the contexts of the deployment.
func (w *worker) readRetries(ctx context.Context) (map[string]deploy.Retry, error) {
	values, err := w.listSidecars(ctx, deploy.RetriesHandle)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	members, err := w.listMembers(ctx)
	all := map[string]deploy.Retry{}
	for id := range members {
		value, ok := values[id]
		if !ok {
			continue
		}
		r, malformed := deploy.ReadRetry(value)
		if malformed != nil {
			r.Index = -1 // No event has this index: beginRetry deletes the retry.
			w.logger.Error(malformed, "Cannot read when an event is to be handled again", "context", id)
		}
		all[id] = r
	}
	return all, err
}

// awaitRetry waits until the next retry of an event is due, and begins it, or until the worker is woken. It reports whether one of
// these has happened.
func (w *worker) awaitRetry(ctx context.Context) (bool, error) {
	retries, err := w.readRetries(ctx)
	if err != nil || len(retries) == 0 {
		return false, err
	}
	id := slices.MinFunc(slices.Collect(maps.Keys(retries)), func(a, b string) int {
		return cmp.Or(retries[a].Next.Compare(retries[b].Next), cmp.Compare(a, b))
	})
	select {
	case <-w.options.Clock.After(retries[id].Next.Sub(w.options.Clock.Now())):
		return true, w.beginRetry(ctx, id, retries[id])
	case <-w.wakeup:
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}

// beginRetry begins an event again. If that is no longer possible, it deletes the retry.
func (w *worker) beginRetry(ctx context.Context, id string, r deploy.Retry) error {
	err := w.commit(ctx, lifecycleChange{edits: []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) {
		next, possible := l.Retry(r)
		if !possible {
			return l, errors.New("the context was stopped, or another event has come")
		}
		return next, nil
	}}}})
	switch {
	case err == nil, errors.Is(err, appcontext.ErrNotFound): // What is gone is dropped when it is read.
		w.wake(id)
		return nil
	case ctx.Err() != nil:
		return err
	default:
		w.logger.Info("An event is not handled again", "context", id, "cause", err.Error())
		return w.write(ctx, id, deploy.Retry{}.Write(id))
	}
}
