package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// InformerOptions configure an Informer.
type InformerOptions struct {
	TrackedOptions

	// Open returns the ListerWatcher of the place as the cluster serves it now. It is called again when the cluster does not serve that
	// resource any more, and after an error. It may block. It returns an error when ctx ends or when an attempt fails; Describe turns that
	// error into a message.
	Open func(ctx context.Context) (cache.ListerWatcher, error)
	// Store receives what is read. Its methods are called one at a time. They must not block: the API server closes a watch that is not read.
	Store cache.ReflectorStore
	// Changed is called, one call at a time, after each change of the state's Status or Reason, and of the Message of a Problem.
	Changed func(State)
}

// Informer keeps the objects of one place in a store. Unlike a shared informer it has no queue: the store has all objects when its Replace returns.
type Informer struct {
	InformerOptions

	tracked *Tracked
	woken   chan struct{}

	mu sync.Mutex
	// cancel ends the current read, after which the place is opened again; nil before the first read.
	cancel context.CancelFunc
}

// NewInformer returns an Informer, which reads nothing before Run. It sets the Tracker of the options.
func NewInformer(r Rules, o InformerOptions) *Informer {
	i := &Informer{InformerOptions: o, woken: make(chan struct{}, 1)}
	i.Tracker = NewTracker(r, o.Clock, i.wake)
	i.tracked = NewTracked(nil, i.TrackedOptions)
	i.tracked.reportsListed, i.tracked.reopen = true, i.reopen
	return i
}

func (i *Informer) wake() {
	select {
	case i.woken <- struct{}{}:
	default:
	}
}

// State returns the state as of now.
func (i *Informer) State() State {
	s, _ := i.Tracker.State()
	return s
}

// RetryNow ends the pause before the next attempt.
func (i *Informer) RetryNow() { i.tracked.RetryNow() }

// Relist reads the place again from the start. Until then the store counts as current, unless outdated is true.
func (i *Informer) Relist(outdated bool) {
	if outdated {
		i.Tracker.Report(Event{Kind: Restarted})
	}
	i.reopen()
	i.tracked.RetryNow()
}

// reopen ends the current read.
func (i *Informer) reopen() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancel != nil {
		i.cancel()
	}
}

// Run reads until ctx ends. All its goroutines have ended when it returns.
func (i *Informer) Run(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(func() { i.read(ctx) })
	defer reading.Wait()
	var last State
	for ctx.Err() == nil {
		s, next := i.Tracker.State()
		if s.Status != last.Status || s.Reason != last.Reason || s.Status == Problem && s.Message != last.Message {
			last = s
			i.Changed(s)
		}
		i.waitForChange(ctx, next)
	}
}

// waitForChange waits until an event is reported, until ctx ends, or until the given time unless it is zero.
func (i *Informer) waitForChange(ctx context.Context, until time.Time) {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := i.Clock.NewTimer(until.Sub(i.Clock.Now()))
		defer timer.Stop()
		timeout = timer.C()
	}
	select {
	case <-i.woken:
	case <-timeout:
	case <-ctx.Done():
	}
}

// read reads until ctx ends.
func (i *Informer) read(ctx context.Context) {
	for ctx.Err() == nil {
		readCtx, cancel := context.WithCancel(ctx)
		i.mu.Lock()
		i.cancel = cancel
		i.mu.Unlock()
		if reflector := i.open(readCtx); reflector != nil {
			for readCtx.Err() == nil {
				_ = reflector.ListAndWatchWithContext(readCtx) // Tracked has reported the error.
			}
		}
		cancel()
		i.tracked.setSource(nil)
	}
}

// open returns the reflector of a new read; nil when the place cannot be read now.
func (i *Informer) open(ctx context.Context) *cache.Reflector {
	if i.tracked.backoff.wait(ctx) != nil {
		return nil
	}
	source, err := i.Open(ctx)
	if err != nil {
		if ctx.Err() == nil {
			kind, reason := Classify(err)
			i.tracked.reportFailure(kind, reason, err)
		}
		return nil
	}
	i.tracked.setSource(source)
	return cache.NewReflectorWithOptions(i.tracked, nil, &reportingStore{i.Store, i.Tracker}, cache.ReflectorOptions{})
}

// reportingStore reports Listed when a store has all objects.
type reportingStore struct {
	cache.ReflectorStore

	tracker *Tracker
}

// Replace implements cache.ReflectorStore.
func (s *reportingStore) Replace(all []any, version string) error {
	if err := s.ReflectorStore.Replace(all, version); err != nil {
		return err
	}
	s.tracker.Report(Event{Kind: Listed})
	return nil
}

// Transformer implements cache.TransformingStore, so that objects are transformed as they arrive.
func (s *reportingStore) Transformer() cache.TransformFunc {
	if transforming, ok := s.ReflectorStore.(cache.TransformingStore); ok {
		return transforming.Transformer()
	}
	return nil
}

var _ cache.TransformingStore = (*reportingStore)(nil)
