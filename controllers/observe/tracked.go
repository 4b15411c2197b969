package observe

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/utils/clock"
)

const (
	// RequestTimeout is the timeout of a list request, or of one page of it, and of opening a watch. The API server's own timeout is a minute.
	RequestTimeout = 90 * time.Second
	// idleTimeout is how long a watch may deliver nothing before it is replaced. kube-apiserver sends a bookmark every minute, but does not
	// promise it. A broken watch looks like a watch of objects that do not change.
	idleTimeout = 3 * time.Minute
)

// TrackedOptions configure a Tracked.
type TrackedOptions struct {
	// Tracker receives an event for each outcome of a request, except Listed: only the store knows when it has stored what was read.
	Tracker *Tracker
	// Clock times pauses and deadlines.
	Clock clock.WithDelayedExecution
	// MaxRetryInterval bounds the pause between attempts that are refused. Zero means the bound of other attempts.
	MaxRetryInterval time.Duration
	// Describe returns a message for users about a request that failed.
	Describe func(reason Reason, err error) string
	// Answered is called for each answer of the API server, and Failed for each request that gets none. Either may be nil.
	Answered func()
	Failed   func(err error)
}

// Tracked wraps a ListerWatcher and reports the outcome of its requests to a Tracker.
//
// It retries requests that fail, with growing pauses, because a reflector alone does not pause after a streaming list that breaks off, and
// does not stop while it pauses after a refusal. The reflector sees only success, the end of ctx, and what it must act on: that everything
// must be read again, in another way, or that the resource is not served. client-go itself retries a request that is answered with 429
// and Retry-After up to ten times, so an API server that asks for long pauses appears as one that does not answer in time.
type Tracked struct {
	cache.ListerWatcher
	TrackedOptions

	backoff *backoff
	// reportsListed is true when the store reports Listed: the initial events of a watch count once they are stored.
	reportsListed bool
	// reopen is called when the API server does not serve the resource: it may serve it as another one by now. nil without an Informer.
	reopen func()
	// listing is held during a list, because a reflector does not wait for the lists that it started.
	listing sync.Mutex
}

// NewTracked returns a Tracked around a ListerWatcher.
func NewTracked(next cache.ListerWatcher, o TrackedOptions) *Tracked {
	return &Tracked{ListerWatcher: next, TrackedOptions: o, backoff: newBackoff(o.Clock, max(o.MaxRetryInterval, maxPause))}
}

// IsWatchListSemanticsUnSupported reports whether the ListerWatcher does not support streaming lists. client-go looks for this method.
func (t *Tracked) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(t.ListerWatcher)
}

// RetryNow ends the pause before the next attempt.
func (t *Tracked) RetryNow() { t.backoff.kick() }

// ListWithContext implements cache.ListerWatcherWithContext.
func (t *Tracked) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	t.listing.Lock()
	defer t.listing.Unlock()
	for {
		if err := t.backoff.wait(ctx); err != nil {
			return nil, err
		}
		requestCtx, cancel := context.WithTimeout(ctx, RequestTimeout)
		list, err := cache.ToListerWatcherWithContext(t.ListerWatcher).ListWithContext(requestCtx, options)
		cancel()
		if err == nil {
			t.answered()
			return list, nil
		}
		if !t.shouldRetry(ctx, false, err) {
			return nil, err
		}
	}
}

// setSource sets the ListerWatcher. It waits for the list that still runs, whose context has ended; one that has yet to begin sends nothing.
func (t *Tracked) setSource(source cache.ListerWatcher) {
	t.listing.Lock()
	defer t.listing.Unlock()
	t.ListerWatcher = source
}

// WatchWithContext implements cache.ListerWatcherWithContext. The end of the watch has been reported when its Stop returns, or its channel
// is closed, so that a reflector does not begin the next attempt before that.
func (t *Tracked) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streamingList := options.SendInitialEvents != nil && *options.SendInitialEvents
	for {
		if err := t.backoff.wait(ctx); err != nil {
			return nil, err
		}
		watchCtx, cancel := context.WithCancel(ctx)
		openTimer := t.Clock.AfterFunc(RequestTimeout, cancel)
		stream, err := cache.ToListerWatcherWithContext(t.ListerWatcher).WatchWithContext(watchCtx, options)
		openTimer.Stop()
		if err == nil {
			return newRelay(stream, func(r *relay) {
				defer cancel()
				t.forward(r, stream, streamingList)
			}), nil
		}
		cancel()
		if !t.shouldRetry(ctx, streamingList, err) {
			return nil, err
		}
	}
}

// shouldRetry reports to the Tracker why a request failed, which may be a streaming list, and returns whether to retry it.
func (t *Tracked) shouldRetry(ctx context.Context, streamingList bool, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if isAnswer(err) {
		t.answered()
	} else if t.Failed != nil {
		t.Failed(err)
	}
	kind, reason := Classify(err)
	if kind == Expired {
		t.backoff.failed(time.Time{}, false, time.Time{}) // The lists of the server may always be too old to watch from.
		t.Tracker.Report(Event{Kind: Expired})
		return false
	}
	if streamingList && isUnsupported(err) {
		return false // The reflector lists instead.
	}
	t.reportFailure(kind, reason, err)
	if reason == NotServed && t.reopen != nil {
		t.reopen()
	}
	return reason != NotServed
}

// reportFailure reports an attempt that failed, and delays the next one.
func (t *Tracked) reportFailure(kind EventKind, reason Reason, err error) {
	t.Tracker.Report(Event{Kind: kind, Reason: reason, Message: t.Describe(reason, err), Confirmed: errors.Is(err, ErrUnsuitable)})
	state, _ := t.Tracker.State()
	t.backoff.failed(time.Time{}, kind == Refused, state.ConfirmBy())
}

// forward sends the events of a watch to the receiver until the watch ends, delivers nothing for idleTimeout, or the receiver stops.
func (t *Tracked) forward(r *relay, stream watch.Interface, streamingList bool) {
	opened := t.Clock.Now()
	defer func() {
		t.backoff.failed(opened, false, time.Time{})
		t.Tracker.Report(Event{Kind: Ended})
	}()
	if !streamingList {
		t.Tracker.Report(Event{Kind: Watching})
	}
	idle := t.Clock.NewTimer(idleTimeout)
	defer idle.Stop()
	for {
		select {
		case <-r.StopChan():
			return
		case <-idle.C():
			return
		case event, ok := <-stream.ResultChan():
			if ok && streamingList && EndsInitialEvents(event) {
				streamingList = false
				t.Tracker.Report(Event{Kind: Watching, Unstored: t.reportsListed}) // Report this first: the store may report Listed as soon as the event is sent.
			}
			if !ok || !r.send(event) {
				return
			}
			idle.Reset(idleTimeout)
			if event.Type == watch.Error {
				continue
			}
			t.answered()
		}
	}
}

func (t *Tracked) answered() {
	if t.Answered != nil {
		t.Answered()
	}
}

// EndsInitialEvents reports whether an event is the bookmark that ends the initial events of a streaming list.
func EndsInitialEvents(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

var _ cache.ListerWatcherWithContext = (*Tracked)(nil)
