package rsync

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// DefaultRetryRefused is the backoff of the retries of refused steps. It begins with a minute, and ends with ten minutes.
var DefaultRetryRefused = wait.Backoff{Duration: time.Minute, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 10 * time.Minute}

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
	var values, members map[string]string
	err := w.retryOnOutage(ctx, func() (err error) {
		values, err = w.options.Store.ListSidecars(ctx, deploy.RetriesHandle)
		return err
	})
	if err == nil && len(values) > 0 {
		members, err = w.listMembers(ctx)
	}
	all := map[string]deploy.Retry{}
	for id, value := range values {
		if _, ok := members[id]; !ok {
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
	id := slices.MinFunc(slices.Sorted(maps.Keys(retries)), func(a, b string) int { return cmp.Compare(retries[a].Next.UnixNano(), retries[b].Next.UnixNano()) })
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
	c := lifecycleChange{lock: w.lock, edits: []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) {
		next, possible := l.Retry(r)
		if !possible {
			return l, errNoRetry
		}
		return next, nil
	}}}}
	err := w.retryOnOutage(ctx, func() error { return c.commit(ctx, w.options.Store) })
	switch {
	case err == nil:
		w.wake(id)
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, appcontext.ErrNotFound):
		return w.retryOnOutage(ctx, func() error { return removeActive(ctx, w.options.Store, id, w.lock) })
	default:
		w.logger.Info("An event is not handled again", "context", id, "cause", err.Error())
		return w.write(ctx, id, []appcontext.Write{deploy.Retry{}.Write(id)})
	}
}

// errNoRetry means that an event must not be retried.
var errNoRetry = errors.New("the context was stopped, or another event has come")
