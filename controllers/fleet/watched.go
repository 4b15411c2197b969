package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// listTimeout is the deadline of one request for a list, or for a page of it, and of the first list of bundles, however it is read.
	listTimeout = time.Minute
	// beginTimeout is the deadline for a watch to begin.
	beginTimeout = time.Minute
	// settlePause is how long a watch that goes on where another ended is given to deliver what has happened in between, before all is called current.
	settlePause = 500 * time.Millisecond
	// minReadPause and maxReadPause bound the pause before a list that failed is tried again.
	minReadPause, maxReadPause = time.Second, 10 * time.Second
)

// watched is how a resource of a cluster is read, or a part of it, such as that in one namespace.
// It tells the cluster's pulse of everything that happens to its requests.
type watched struct {
	toolscache.ListerWatcher

	pulse *pulse
	// resource names what is watched among all that the pulse hears of, what does so for people, and remedy says for people what to do when it is not served.
	resource, what, remedy string
	// state is where the pulse keeps how it stands.
	state func(*liveness) *readState
	// rules happens when other rules are in force, and foreign says whether anything is held that was judged by rules here; nil when nothing is.
	rules   *occasion
	foreign func() bool
	// judged is closed when other rules are in force than when the resource was read from the start.
	judged <-chan struct{}
}

// newWatched returns how to read a resource, which is not current yet.
func newWatched(next toolscache.ListerWatcher, w watched) *watched {
	w.ListerWatcher = next
	w.pulse.ask(func(l *liveness, now time.Time) { w.pulse.lose(&w, l, now) })
	return &w
}

// ListWithContext implements cache.ListerWatcherWithContext. It tries until it
// succeeds, because the pauses of a reflector may come to more than a minute.
func (w *watched) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		w.fromStart()
	}
	for pause := minReadPause; ; pause = min(2*pause, maxReadPause) {
		if err := w.pulse.awaitOpen(ctx); err != nil {
			return nil, err
		}
		deadline, cancel := context.WithTimeout(ctx, listTimeout)
		list, err := toolscache.ToListerWatcherWithContext(w.ListerWatcher).ListWithContext(deadline, options)
		cancel()
		if err == nil {
			w.pulse.tell(func(l *liveness, now time.Time) { l.answered(now) })
			return list, nil
		}
		if ctx.Err() != nil || !w.pulse.failedToRead(w, err) {
			return nil, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // It is no secret when it is tried again.
		case <-ctx.Done():
			return nil, err
		}
	}
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (w *watched) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := w.pulse.awaitOpen(ctx); err != nil {
		return nil, err
	}
	// A watch that begins with all there is says when it is through; one that goes on where another ended is through soon.
	fromStart := options.SendInitialEvents != nil && *options.SendInitialEvents
	if fromStart {
		w.fromStart()
	}
	within, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(beginTimeout, cancel)
	stream, err := toolscache.ToListerWatcherWithContext(w.ListerWatcher).WatchWithContext(within, options)
	late.Stop()
	if err != nil {
		cancel()
		if ctx.Err() == nil {
			w.pulse.failedToRead(w, err)
		}
		return nil, err
	}
	judged := w.judged
	return newRelay(stream, func(r *relay) {
		defer cancel()
		w.overhear(r, stream, fromStart, judged)
	}), nil
}

// overhear passes events on until there are no more, nobody wants them, or all has to be judged anew. The cluster's pulse
// hears of every event and of the end.
func (w *watched) overhear(r *relay, stream watch.Interface, fromStart bool, judged <-chan struct{}) {
	// That the watch has begun is no answer: client-go gives an empty one when the connection ends before there was any.
	settled := time.NewTimer(settlePause)
	defer settled.Stop()
	rules := judged
	if fromStart {
		settled.Stop()
		rules = nil // What is being read is read to its end.
	}
	defer w.pulse.tell(func(l *liveness, now time.Time) { w.pulse.lose(w, l, now) })
	for {
		select {
		case <-settled.C:
			w.pulse.gain(w)
		case <-r.StopChan():
			return
		case <-rules:
			if w.outdated() {
				r.send(expired())
				return
			}
			rules = w.rules.coming()
		case event, ok := <-stream.ResultChan():
			if !ok || !r.send(event) {
				return
			}
			if event.Type != watch.Error {
				w.pulse.tell(func(l *liveness, now time.Time) { l.answered(now) })
			}
			if fromStart && endsInitialEvents(event) {
				settled.Reset(settlePause) // What was read has yet to be put in place.
				rules = judged
			}
		}
	}
}

// endsInitialEvents says whether an event is that after which a watch from the start has told of all there is.
func endsInitialEvents(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

var _ toolscache.ListerWatcherWithContext = (*watched)(nil)
