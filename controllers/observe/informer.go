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

	// Open returns how the place is read, as the cluster serves it now; it is called again when the cluster has said that it does not serve
	// it so. It may wait, and reports to the Tracker what it waits for. It fails when ctx ends, or when an attempt has failed, which is described by Describe.
	Open func(ctx context.Context) (cache.ListerWatcher, error)
	// Store takes what is read. Its methods are called one at a time. They must not block: the API server ends a watch that is not read.
	Store cache.ReflectorStore
	// Changed is called after every change of the state's Status or Reason, and of the Message of a Problem, one call at a time.
	Changed func(State)
}

// Informer keeps in a store what is in one place. Unlike a shared informer it has no queue: what Replace has stored is there when it returns.
type Informer struct {
	InformerOptions

	tracked *Tracked
	woken   chan struct{}

	mu sync.Mutex
	// end ends the present reading; nil while there is none.
	end context.CancelFunc
	// reflector is that of the present reading; nil when the next one has to begin from the start.
	reflector *cache.Reflector
}

// NewInformer returns an Informer, which reads once it runs. It makes the Tracker of the options.
func NewInformer(r Rules, o InformerOptions) *Informer {
	i := &Informer{InformerOptions: o, woken: make(chan struct{}, 1)}
	i.Tracker = NewTracker(r, o.Clock, i.wake)
	i.tracked = NewTracked(nil, i.TrackedOptions)
	i.tracked.stores = true
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

// Kick lets an attempt that waits begin at once.
func (i *Informer) Kick() { i.tracked.Kick() }

// Reread reads the place again from the start. What the store holds counts as current until then, unless outdated.
func (i *Informer) Reread(outdated bool) {
	if outdated {
		i.Tracker.Report(Event{Kind: Restarted})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reflector = nil
	if i.end != nil {
		i.end()
	}
	i.tracked.Kick()
}

// Run reads until ctx ends. When it returns nothing of it runs any more.
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
		i.await(ctx, next)
	}
}

// await waits until something is reported, or until a time, unless that is zero.
func (i *Informer) await(ctx context.Context, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := i.Clock.NewTimer(until.Sub(i.Clock.Now()))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-i.woken:
	case <-due:
	case <-ctx.Done():
	}
}

// read reads until ctx ends.
func (i *Informer) read(ctx context.Context) {
	defer i.tracked.finish()
	for ctx.Err() == nil {
		within, end := context.WithCancel(ctx)
		i.mu.Lock()
		i.end = end
		reflector := i.reflector
		i.mu.Unlock()
		if reflector == nil {
			reflector = i.open(within)
		}
		if reflector != nil {
			_ = reflector.ListAndWatchWithContext(within) // Tracked has reported what the matter is.
		}
		end()
		if i.tracked.notServed.Swap(false) {
			i.mu.Lock()
			i.reflector = nil
			i.mu.Unlock()
		}
	}
}

// open returns the reflector of a new reading; nil when the place cannot be read now.
func (i *Informer) open(ctx context.Context) *cache.Reflector {
	if i.tracked.await(ctx) != nil {
		return nil
	}
	source, err := i.Open(ctx)
	if err != nil {
		if ctx.Err() == nil {
			kind, reason := Classify(err)
			i.tracked.report(kind, reason, err)
		}
		return nil
	}
	i.tracked.finish()
	i.tracked.ListerWatcher = source
	reflector := cache.NewReflectorWithOptions(i.tracked, nil, &reportingStore{i.Store, i.Tracker}, cache.ReflectorOptions{})
	i.mu.Lock()
	defer i.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	i.reflector = reflector
	return reflector
}

// reportingStore reports that a store holds all there is.
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

// Transformer implements cache.TransformingStore: objects are transformed as they arrive.
func (s *reportingStore) Transformer() cache.TransformFunc {
	if transforming, ok := s.ReflectorStore.(cache.TransformingStore); ok {
		return transforming.Transformer()
	}
	return nil
}

var _ cache.TransformingStore = (*reportingStore)(nil)
