package app

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

const (
	// watchPatience is how long scopes may go without a watch before they count as old: every watch ends now and then, and is resumed within a second.
	watchPatience = 5 * time.Second
	// watchSettles is how long a watch that is resumed may take to tell of what has changed meanwhile.
	watchSettles = 250 * time.Millisecond
)

// scopeWatch knows whether the watch is open that keeps the cache of scopes current. The zero value is ready; it is safe for concurrent use.
type scopeWatch struct {
	mu sync.Mutex
	// open says that there is a watch, since resumed; lost is when there was one last that told of changes, and problem why there is none.
	open bool
	// read says that there was a watch once.
	read          bool
	resumed, lost time.Time
	problem       string
}

// newInformer is for cache.Options: it makes informers as usual, and listens to that of scopes.
func (w *scopeWatch) newInformer(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, ok := object.(*corev1alpha2.HealthScope); ok {
		lw = scopeLister{lw, w}
	}
	return toolscache.NewSharedIndexInformer(lw, object, resync, indexers)
}

// outage returns since when scopes cannot be seen as they are, and why; the zero time while they can.
func (w *scopeWatch) outage(now time.Time) (since time.Time, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.open && now.Sub(w.resumed) >= watchSettles, w.lost.IsZero(), now.Sub(w.lost) < watchPatience:
		return time.Time{}, ""
	default:
		return w.lost, w.problem
	}
}

// unread reports whether scopes have not been read yet, and why, as far as that is known.
func (w *scopeWatch) unread() (unread bool, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.read, w.problem
}

func (w *scopeWatch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = true
	w.open, w.resumed, w.problem = true, time.Now(), ""
}

// ended notes that the watch has ended. One that ends at once has told nothing: client-go gives an empty one when the
// connection ends before there was an answer.
func (w *scopeWatch) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return
	}
	w.open = false
	if now := time.Now(); w.lost.IsZero() || now.Sub(w.resumed) >= watchSettles {
		w.lost = now
	} else {
		w.problem = "the connection ends before there is an answer"
	}
}

func (w *scopeWatch) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem = err.Error()
}

// scopeLister lists and watches scopes, and tells how that goes.
type scopeLister struct {
	toolscache.ListerWatcher

	told *scopeWatch
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (l scopeLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := toolscache.ToListerWatcherWithContext(l.ListerWatcher).ListWithContext(ctx, options)
	if err != nil {
		l.told.failed(err)
	}
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (l scopeLister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	stream, err := toolscache.ToListerWatcherWithContext(l.ListerWatcher).WatchWithContext(ctx, options)
	if err != nil {
		l.told.failed(err)
		return nil, err
	}
	s := &scopeEvents{Interface: stream, told: l.told, events: make(chan apiwatch.Event), done: make(chan struct{})}
	go s.pass(options.SendInitialEvents != nil && *options.SendInitialEvents)
	return s, nil
}

// scopeEvents is a watch of scopes.
type scopeEvents struct {
	apiwatch.Interface

	told   *scopeWatch
	events chan apiwatch.Event
	done   chan struct{}
	once   sync.Once
}

// ResultChan implements apiwatch.Interface.
func (s *scopeEvents) ResultChan() <-chan apiwatch.Event { return s.events }

// Stop implements apiwatch.Interface.
func (s *scopeEvents) Stop() {
	s.once.Do(func() { close(s.done) })
	s.Interface.Stop()
}

// pass passes events on until there are no more, or nobody wants them. A watch that begins with all there is has begun when it is through with that.
func (s *scopeEvents) pass(fromStart bool) {
	defer close(s.events)
	if !fromStart {
		s.told.begun()
	}
	defer s.told.ended()
	for {
		select {
		case <-s.done:
			return
		case event, ok := <-s.Interface.ResultChan():
			if !ok {
				return
			}
			select {
			case s.events <- event:
			case <-s.done:
				return
			}
			if fromStart && isInitialBookmark(event) {
				s.told.begun()
			}
		}
	}
}

// isInitialBookmark says whether an event is that after which a watch from the start has told of all there is.
func isInitialBookmark(event apiwatch.Event) bool {
	if event.Type != apiwatch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

var _ toolscache.ListerWatcherWithContext = scopeLister{}
