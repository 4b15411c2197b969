package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

const (
	// steady is how long a watch must have worked for its next failure to count as the first.
	steady = time.Minute
	// refusedFor is for how long a refused kind is asked for again. After that, nothing but a change of the cluster's kinds is a reason to.
	refusedFor = time.Hour
	// doubtTime is how long a kind that has been read must be refused, or not be there, before that
	// is believed: an API server that starts denies for a moment what it allows, and does not know all that it serves.
	doubtTime = 10 * time.Second
	// patience is for how long the first attempts of a watch may fail before nobody waits for it any more.
	patience = 30 * time.Second
)

// unread says why the objects of a kind cannot be seen.
type unread string

const (
	// unreadForbidden means that the monitor may not read the kind.
	unreadForbidden unread = "Forbidden"
	// unreadNoAnswer means that the kind has not been read yet.
	unreadNoAnswer unread = "NoAnswer"
)

// watch follows one source for as long as it runs and keeps its objects in store.
type watch struct {
	source source
	store  *store
	// open is source.open.
	open func() (*cache.ListWatch, error)
	// readable is called when unreadable has another answer than before.
	readable func()
	// settled is closed when the objects have been read once, or when they cannot be read, at least not within patience.
	settled chan struct{}
	once    sync.Once
	// again has room for one demand to try at once.
	again chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// problem is why the objects cannot be followed now, or nil.
	problem error
	// listed and watched say what has succeeded since the last failure.
	listed, watched bool
	// known is true when the store says what is in the cluster, or was a moment
	// ago; forbidden, when the kind may not be read, as far as is known; and gone,
	// when there is no such kind, or none to be shown, as far as is known.
	known, forbidden, gone bool
	// doubted is since when a kind that has been read is refused, or zero.
	doubted time.Time

	// What follows belongs to run.
	logger       logr.Logger
	started      time.Time
	reflector    *cache.Reflector
	retryPause   wait.Backoff
	refusedPause wait.Backoff
	refusedSince time.Time
}

func newWatch(s source) *watch {
	w := &watch{
		source:       s,
		store:        newStore(s.kind, s.key),
		open:         s.open,
		readable:     func() {},
		settled:      make(chan struct{}),
		again:        make(chan struct{}, 1),
		retryPause:   retryPause,
		refusedPause: refusedPause,
	}
	w.store.filled = func() { w.succeeded(true, false) }
	return w
}

// run follows the source until ctx is done.
func (w *watch) run(ctx context.Context) {
	w.logger = logr.FromContextOrDiscard(ctx).WithValues("kind", w.source.kind.String())
	if w.source.key != "" {
		w.logger = w.logger.WithValues("label", w.source.key)
	}
	if w.source.namespace != "" {
		w.logger = w.logger.WithValues("namespace", w.source.namespace)
	}
	ctx = logr.NewContext(ctx, w.logger)
	w.started = time.Now()
	// A reflector may try again and again by itself, and never return an error.
	tired := time.AfterFunc(listTimeout+patience, func() { w.once.Do(func() { close(w.settled) }) })
	defer tired.Stop()
	for ctx.Err() == nil {
		began := time.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		w.failed(err)
		w.rest(ctx, err, began)
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
		w.reflector = cache.NewReflectorWithOptions(objects, nil, w.store, cache.ReflectorOptions{
			Name:            controllerName,
			TypeDescription: w.source.kind.String(),
			Logger:          &w.logger,
			Backoff:         &retryPause,
		})
	}
	return w.reflector.ListAndWatchWithContext(ctx)
}

// succeeded notes that the objects have been listed, or that a watch is open.
// Only both together show that a problem is over: whoever may list but not
// watch would be told so at each attempt.
func (w *watch) succeeded(listed, watched bool) {
	before := w.unreadable()
	w.mu.Lock()
	w.listed, w.watched = w.listed || listed, w.watched || watched
	w.known, w.gone = w.known || listed, w.gone && !listed
	over := w.problem != nil && w.listed && w.watched
	if over {
		w.problem, w.forbidden, w.doubted = nil, false, time.Time{}
		w.refusedSince = time.Time{}
	}
	w.mu.Unlock()
	if listed {
		w.once.Do(func() { close(w.settled) })
	}
	if over {
		w.logger.Info("Kind can be read again")
	}
	if w.unreadable() != before {
		w.readable()
	}
}

// failed notes why the objects cannot be followed, and reports it once. What
// has been read stays, except when the kind itself is gone for long enough to be believed: a right that is
// missing for a moment, or a kind that is between two versions, must not make resources vanish.
func (w *watch) failed(err error) {
	if err == nil {
		w.logger.V(1).Info("Watch ended, reading again")
		return
	}
	before, believed := w.unreadable(), w.believed(err, time.Now())
	if absent(err) && believed {
		w.mu.Lock()
		w.gone = true // Before: another version that has not been read is missed from now on.
		w.mu.Unlock()
		w.store.replace(nil) // Before it is said that all is known.
	}
	w.report(err, believed)
	if refused(err) || apierrors.IsNotFound(err) {
		w.reflector = nil // Discover again what the kind's resource is.
	}
	if w.unreadable() != before {
		w.readable()
	}
	if refused(err) || time.Since(w.started) >= patience {
		w.once.Do(func() { close(w.settled) })
	}
}

// report logs a problem when it is new, and remembers it. believed says whether it shows that the kind cannot be read.
func (w *watch) report(err error, believed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.problem != nil && refused(w.problem) == refused(err)
	w.problem = err
	w.listed, w.watched = false, false
	switch {
	case !absent(err):
		w.forbidden = believed || w.forbidden
	case believed:
		w.known, w.gone, w.forbidden = true, true, false
	}
	switch {
	case known || errors.Is(err, errElsewhere):
		w.logger.V(1).Info("Still cannot read kind", "reason", err.Error())
	case refused(err):
		w.logger.Info("Cannot read kind, going on without it; it is tried again for an hour, and then only when the kinds of the cluster change or the monitor restarts", "reason", err.Error())
	default:
		w.logger.Info("Cannot read kind, trying again", "reason", err.Error())
	}
}

// believed says whether an attempt that ended so now shows that the kind may not be read, or is not there. One that has
// been read must be refused for doubtTime, at each attempt: while a CRD goes from one version to another, neither is served.
// So must one that is not served when the monitor starts: the API server may have started with it, and serve it in a moment.
func (w *watch) believed(err error, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !refused(err):
		w.doubted = time.Time{}
		return false
	case !w.known && !errors.Is(err, errNotServed), w.gone && absent(err):
		w.doubted = time.Time{}
		return true
	case w.doubted.IsZero(), absent(err) && !absent(w.problem): // That it was refused before says nothing about whether it is there.
		w.doubted = now
	}
	return now.Sub(w.doubted) >= doubtTime
}

// unreadable says why it is not known which objects there are; empty when it
// is known. A kind that has been read stays known through passing failures, and
// where there is no such kind, or none to be shown, there are no objects.
func (w *watch) unreadable() unread {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.forbidden:
		return unreadForbidden
	case !w.known:
		return unreadNoAnswer
	default:
		return ""
	}
}

// shows says whether the store shows the objects that there are, or were a moment ago.
func (w *watch) shows() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known && !w.forbidden && !w.gone
}

// troubled says whether the objects cannot be followed now, so that what the store shows may be old.
func (w *watch) troubled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem != nil
}

// rest waits until it is time for the next attempt, after one that began then and ended so.
func (w *watch) rest(ctx context.Context, err error, began time.Time) {
	pause, ok := w.pause(err, began, time.Now())
	if !ok {
		select {
		case <-w.again:
		case <-ctx.Done():
		}
		w.refusedSince = time.Time{}
		return
	}
	timer := time.NewTimer(min(pause, w.doubtLeft(time.Now())))
	defer timer.Stop()
	select {
	case <-w.again:
		w.refusedSince = time.Time{}
	case <-timer.C:
	case <-ctx.Done():
	}
}

// doubtLeft is how long it is until a refusal is believed, or for ever when none is doubted.
func (w *watch) doubtLeft(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := w.doubted.Add(doubtTime).Sub(now); !w.doubted.IsZero() && left > 0 {
		return left
	}
	return math.MaxInt64
}

// pause says how long to wait after an attempt that took from then to now and
// ended so, or that waiting does not help.
func (w *watch) pause(err error, began, now time.Time) (time.Duration, bool) {
	if err == nil || !refused(err) {
		w.refusedSince = time.Time{}
		if now.Sub(began) >= steady {
			w.retryPause = retryPause
		}
		return w.retryPause.Step(), true
	}
	if w.refusedSince.IsZero() {
		w.refusedSince, w.refusedPause = now, refusedPause
	}
	return w.refusedPause.Step(), now.Sub(w.refusedSince) < refusedFor
}

// retry makes a watch that was refused try again now: the cluster's kinds have changed.
func (w *watch) retry() {
	w.mu.Lock()
	wanted := w.problem != nil && refused(w.problem)
	w.mu.Unlock()
	if !wanted {
		return
	}
	select {
	case w.again <- struct{}{}:
	default: // It is going to.
	}
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
