package observe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	// RequestTimeout is the deadline of a list, or of a page of it, and of opening a watch. The API server itself gives up after a minute.
	RequestTimeout = 90 * time.Second
	// quiet is how long a watch may deliver nothing before another one is opened. kube-apiserver sends a bookmark every minute, which it
	// does not promise. A watch that has stopped delivering looks like one of a place where nothing happens.
	quiet = 3 * time.Minute
)

// TrackedOptions say how a ListerWatcher is used and what is reported of it.
type TrackedOptions struct {
	// Tracker gets an event for whatever happens to a request. Listed is the exception: only the store knows when it has taken what was read.
	Tracker *Tracker
	// Clock is the clock of pauses and deadlines.
	Clock clock.WithDelayedExecution
	// MaxRefused bounds the pause between attempts that are refused; zero means as long as between others.
	MaxRefused time.Duration
	// Describe returns for people what is wrong when a request fails.
	Describe func(reason Reason, err error) string
	// Answered is called at every answer of the API server, and Failed when a request ends without one; nil for none.
	Answered func()
	Failed   func(err error)
}

// Tracked wraps a ListerWatcher and reports everything that happens to its requests.
//
// It repeats requests that fail, with growing pauses, so that a reflector sees success, an end of ctx, and what it has to act on: that all
// has to be read again, or in another way, or that it is not served. A reflector by itself does not pause after a streaming list that breaks off, does not stop while
// it pauses after one that is refused, and keeps some errors of watches to itself. The requests of client-go keep something to themselves too: one that
// is answered with 429 and Retry-After is repeated, up to ten times, before anything is seen of it here. An API server that asks for long pauses
// shows as one that does not answer in time.
type Tracked struct {
	cache.ListerWatcher
	TrackedOptions

	pace *pace
	// stores is true when Listed is reported: what a watch from the start delivers counts once it is stored.
	stores bool
	// notServed is true when the API server has said that it does not serve the place as it is read.
	notServed atomic.Bool

	// ended is closed when the watch that was opened last has been reported to have ended; nil before the first one.
	ended atomic.Pointer[chan struct{}]

	mu sync.Mutex
	// calls are the lists that are under way: a reflector does not wait for those that it began.
	calls sync.WaitGroup
}

// NewTracked returns a Tracked around a ListerWatcher.
func NewTracked(next cache.ListerWatcher, o TrackedOptions) *Tracked {
	return &Tracked{ListerWatcher: next, TrackedOptions: o, pace: newPace(o.Clock, max(o.MaxRefused, maxPause))}
}

// IsWatchListSemanticsUnSupported reports whether the ListerWatcher cannot read all there is by a watch. client-go looks for this method.
func (t *Tracked) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(t.ListerWatcher)
}

// Kick lets an attempt that waits begin at once.
func (t *Tracked) Kick() { t.pace.kick() }

// ListWithContext implements cache.ListerWatcherWithContext.
func (t *Tracked) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if !t.begin(ctx) {
		return nil, ctx.Err()
	}
	defer t.calls.Done()
	for {
		if err := t.await(ctx); err != nil {
			return nil, err
		}
		deadline, cancel := context.WithTimeout(ctx, RequestTimeout)
		list, err := cache.ToListerWatcherWithContext(t.ListerWatcher).ListWithContext(deadline, options)
		cancel()
		if err == nil {
			t.answered()
			return list, nil
		}
		if !t.retries(ctx, err) {
			return nil, err
		}
	}
}

// begin counts a list that begins, and reports whether it may.
func (t *Tracked) begin(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	t.calls.Add(1)
	return true
}

// finish waits for lists that are under way. Their contexts have ended.
func (t *Tracked) finish() {
	t.mu.Lock() // After it no list begins any more.
	defer t.mu.Unlock()
	t.calls.Wait()
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (t *Tracked) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	for {
		if err := t.await(ctx); err != nil {
			return nil, err
		}
		within, cancel := context.WithCancel(ctx)
		late := t.Clock.AfterFunc(RequestTimeout, cancel)
		stream, err := cache.ToListerWatcherWithContext(t.ListerWatcher).WatchWithContext(within, options)
		late.Stop()
		if err == nil {
			fromStart := options.SendInitialEvents != nil && *options.SendInitialEvents
			ended := t.opened()
			return newRelay(stream, func(r *relay) {
				defer close(ended)
				defer cancel()
				t.pass(r, stream, fromStart)
			}), nil
		}
		cancel()
		if !t.retries(ctx, err) {
			return nil, err
		}
	}
}

// await waits until the next attempt may begin: what happened to the one before has to be reported first.
func (t *Tracked) await(ctx context.Context) error {
	if ended := t.ended.Load(); ended != nil {
		select {
		case <-*ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return t.pace.wait(ctx)
}

// opened notes that a watch is open, and returns what is to be closed when it has been reported to have ended.
func (t *Tracked) opened() chan struct{} {
	ended := make(chan struct{})
	t.ended.Store(&ended)
	return ended
}

// retries reports what is wrong with a request that failed, and whether it is to be repeated.
func (t *Tracked) retries(ctx context.Context, err error) bool {
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
		t.Tracker.Report(Event{Kind: Expired})
		t.pace.failed(time.Time{}, false, time.Time{})
		return false
	}
	if isUnsupported(err) {
		return false
	}
	t.report(kind, reason, err)
	if reason == NotServed { // It may be served in another way by now, which is to be found out.
		t.notServed.Store(true)
		return false
	}
	return true
}

// report reports an attempt that failed, and puts off the next one.
func (t *Tracked) report(kind EventKind, reason Reason, err error) {
	t.Tracker.Report(Event{Kind: kind, Reason: reason, Message: t.Describe(reason, err), Certain: errors.Is(err, ErrUnsuitable)})
	state, _ := t.Tracker.State()
	t.pace.failed(time.Time{}, kind == Refused, state.ConfirmBy())
}

// pass passes the events of a watch on until there are no more, none comes for too long, or the receiver stops.
func (t *Tracked) pass(r *relay, stream watch.Interface, fromStart bool) {
	opened := t.Clock.Now()
	defer func() {
		t.pace.failed(opened, false, time.Time{})
		t.Tracker.Report(Event{Kind: Ended})
	}()
	if !fromStart {
		t.Tracker.Report(Event{Kind: Watching})
	}
	idle := t.Clock.NewTimer(quiet)
	defer idle.Stop()
	for {
		select {
		case <-r.StopChan():
			return
		case <-idle.C():
			return
		case event, ok := <-stream.ResultChan():
			if ok && fromStart && EndsInitialEvents(event) {
				fromStart = false
				t.Tracker.Report(Event{Kind: Watching, Unstored: t.stores}) // Before all is stored, which is as soon as it is sent.
			}
			if !ok || !r.send(event) {
				return
			}
			idle.Reset(quiet)
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

// EndsInitialEvents reports whether an event is the bookmark after which a watch from the start has delivered all there is.
func EndsInitialEvents(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

var _ cache.ListerWatcherWithContext = (*Tracked)(nil)
