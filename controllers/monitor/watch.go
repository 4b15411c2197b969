package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var (
	// retryPause is the pause before the next attempt after a passing failure.
	// It stays short: the objects of the kind are stale until it succeeds.
	retryPause = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second}
	// refusedPause is the pause after a refusal. It is long: what changes that
	// (a right granted, a kind installed) happens once, if at all.
	refusedPause = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 10 * time.Minute}
)

// steady is how long a watch must have worked for its next failure to count as the first.
const steady = time.Minute

// watch follows one source for as long as it runs and keeps its objects in store.
type watch struct {
	source source
	store  *store
	// open is source.open.
	open func() (*cache.ListWatch, error)
	// settled is closed when the objects have been read once, or when they cannot be read.
	settled chan struct{}
	once    sync.Once

	// mu guards what follows.
	mu sync.Mutex
	// problem is why the objects cannot be followed now, or nil.
	problem error
	// listed and watched say what has succeeded since the last failure.
	listed, watched bool

	// What follows belongs to run.
	logger       logr.Logger
	reflector    *cache.Reflector
	retryPause   wait.Backoff
	refusedPause wait.Backoff
}

func newWatch(s source) *watch {
	w := &watch{
		source:       s,
		store:        newStore(s.key),
		open:         s.open,
		settled:      make(chan struct{}),
		retryPause:   retryPause,
		refusedPause: refusedPause,
	}
	w.store.filled = func() { w.succeeded(true, false) }
	return w
}

// run follows the source until ctx is done.
func (w *watch) run(ctx context.Context) {
	w.logger = logr.FromContextOrDiscard(ctx).WithValues("kind", w.source.kind.String(), "label", w.source.key)
	if w.source.namespace != "" {
		w.logger = w.logger.WithValues("namespace", w.source.namespace)
	}
	ctx = logr.NewContext(ctx, w.logger)
	for ctx.Err() == nil {
		began := time.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		w.failed(err)
		sleep(ctx, w.pause(err, time.Since(began)))
	}
}

// follow lists and watches until something fails. The error is nil when it
// worked for a while and then broke off.
func (w *watch) follow(ctx context.Context) error {
	if w.reflector == nil {
		objects, err := w.open()
		if err != nil {
			return err
		}
		open := objects.WatchFuncWithContext
		objects.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := open(ctx, options)
			if err == nil {
				w.succeeded(false, true)
			}
			return events, err
		}
		expected := &unstructured.Unstructured{}
		expected.SetGroupVersionKind(w.source.kind)
		w.reflector = cache.NewReflectorWithOptions(objects, expected, w.store, cache.ReflectorOptions{
			Name:    controllerName,
			Logger:  &w.logger,
			Backoff: &retryPause,
		})
	}
	return w.reflector.ListAndWatchWithContext(ctx)
}

// succeeded notes that the objects have been listed, or that a watch is open.
// Only both together show that a problem is over: whoever may list but not
// watch would be told so at each attempt.
func (w *watch) succeeded(listed, watched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed, w.watched = w.listed || listed, w.watched || watched
	if listed {
		w.once.Do(func() { close(w.settled) })
	}
	if w.problem != nil && w.listed && w.watched {
		w.problem = nil
		w.logger.Info("Kind can be read again")
	}
}

// failed notes why the objects cannot be followed, and reports it once. What
// has been read stays, except when the kind itself is gone: a right that is
// missing for a moment must not make resources vanish.
func (w *watch) failed(err error) {
	if err == nil {
		w.logger.V(1).Info("Watch ended, reading again")
		return
	}
	w.report(err)
	if refused(err) || apierrors.IsNotFound(err) {
		w.reflector = nil // Discover again what the kind's resource is.
	}
	if errors.Is(err, errNotServed) {
		w.store.replace(nil)
	}
	if refused(err) {
		w.once.Do(func() { close(w.settled) })
	}
}

// report logs a problem when it is new, and remembers it.
func (w *watch) report(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.problem != nil && refused(w.problem) == refused(err)
	w.problem = err
	w.listed, w.watched = false, false
	switch {
	case known:
		w.logger.V(1).Info("Still cannot read kind", "reason", err.Error())
	case refused(err):
		w.logger.Info("Cannot read kind, going on without it", "reason", err.Error())
	default:
		w.logger.Info("Cannot read kind, trying again", "reason", err.Error())
	}
}

// pause says how long to wait after an attempt that took so long and ended so.
func (w *watch) pause(err error, took time.Duration) time.Duration {
	if err != nil && refused(err) {
		return w.refusedPause.Step()
	}
	w.refusedPause = refusedPause
	if took >= steady {
		w.retryPause = retryPause
	}
	return w.retryPause.Step()
}

// awaitSettled waits until the objects have been read once or are known to be
// unreadable. The error tells what is in the way.
func (w *watch) awaitSettled(ctx context.Context) error {
	select {
	case <-w.settled:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cause := w.problem
	if cause == nil {
		cause = context.Cause(ctx)
	}
	return fmt.Errorf("cannot read %q with label %q: %w", w.source.kind, w.source.key, cause)
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
