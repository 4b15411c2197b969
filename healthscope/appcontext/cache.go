package appcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// Defaults of CacheOptions.
const (
	defaultIdle        = 10 * time.Minute
	defaultMaxContexts = 256
)

// CacheOptions say what a Cache keeps.
type CacheOptions struct {
	// Idle is how long a context stays after it was asked for. When nothing has been asked for that long, the cache no
	// longer watches. The default is 10 minutes.
	Idle time.Duration
	// MaxContexts is how many contexts are kept; beyond that, the one that was asked for longest ago goes. The default is 256.
	MaxContexts int
	// Changed is called with the ids of contexts in which something has changed besides the bundles that are saved there, and
	// of those that were made for the same; nil when anything may have. It must not block. With it, the cache watches as long as
	// it runs, also while nothing is asked for. Nil means that changes are not reported.
	Changed func(ids []string)
	// Clock measures Idle. The default is that of the machine.
	Clock clock.WithTicker
}

// Cache answers as a Store does, but from memory: one watch, on everything from /context/ to /healthscope/, keeps the
// contexts that callers ask for current, and each answer is as of one revision. While etcd is unreachable the cache still
// answers, and says how old the answer is. It is safe for concurrent use, and needs Run to run.
type Cache struct {
	store   *Store
	options CacheOptions
	// startWatch holds a token when a caller has asked while the cache did not watch.
	startWatch chan struct{}
	// steady is held while a context is read at the revision of the contents, and by the watch while it changes the contents: the
	// watch waits until the context is among them. Whoever needs it and mu takes it first.
	steady *semaphore.Weighted

	mu sync.Mutex
	// contents is nil until the watch has loaded it. loaded is closed when that has happened, and when the watch has ended
	// before: then the caller has to start it again.
	contents *cacheContents
	loaded   chan struct{}
	// lastUsed is when a caller last asked for anything, and watchErr is why the watch last broke.
	lastUsed time.Time
	watchErr error
}

// NewCache returns a cache of a store. The caller must call Run.
func NewCache(s *Store, o CacheOptions) *Cache {
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.MaxContexts <= 0 {
		o.MaxContexts = defaultMaxContexts
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Cache{store: s, options: o, startWatch: make(chan struct{}, 1), steady: semaphore.NewWeighted(1), loaded: make(chan struct{})}
	if o.Changed != nil {
		c.startWatch <- struct{}{}
	}
	return c
}

// Run keeps the cache current until ctx is done or the store is closed. It watches from the first call until the cache has
// been idle for CacheOptions.Idle. If changes are reported, it always watches.
func (c *Cache) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.store.config.Context, func() { cancel(ErrClosed) })() //nolint:contextcheck // It ends when the store is closed.
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-c.startWatch:
			c.watchWhileUsed(ctx)
		}
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return wrap("cannot keep cache", ErrClosed)
	}
	return nil
}

// View answers as Store.View does. AsOf says how old the answer can be.
func (c *Cache) View(ctx context.Context, subject DeploymentRef, instance string) (View, error) {
	if err := subject.check(); err != nil {
		return View{}, wrap(fmt.Sprintf("cannot read status of %q", subject), err)
	}
	var view View
	err := c.answer(ctx, func(contents *cacheContents) error {
		record, err := contents.record(subject)
		if err != nil {
			return err
		}
		view = View{Revision: contents.revision, AsOf: contents.asOf, Info: record.info, Contexts: record.contexts}
		if record.isEmpty() {
			view.Contexts = contents.bySubject()[subject]
		}
		view.inForce = contents.known.inForce(view.Contexts)
		err = view.resolveContexts(instance, func(id string) (*Snapshot, error) { return contents.snapshot(id, c.lastUsed) })
		if err == nil && view.StatusContext != nil {
			view.observations = maps.Clone(contents.observations[view.StatusContext.ID()])
		}
		return err
	})
	if errors.Is(err, errCompacted) {
		return c.store.View(ctx, subject, instance)
	}
	return view, wrap(fmt.Sprintf("cannot read status of %q", subject), err)
}

// Snapshot answers as Store.Snapshot does, and returns when etcd was last asked and nothing had changed.
func (c *Cache) Snapshot(ctx context.Context, id string) (snapshot *Snapshot, asOf time.Time, err error) {
	if err := checkName("context id", id); err != nil {
		return nil, time.Time{}, err
	}
	err = c.answer(ctx, func(contents *cacheContents) error {
		if snapshot, err = contents.snapshot(id, c.lastUsed); err != nil {
			return err
		}
		asOf = contents.asOf
		if len(snapshot.values) == 0 {
			return keyError(ErrNotFound, string(ContextHandle(id)))
		}
		return nil
	})
	if errors.Is(err, errCompacted) {
		asOf = time.Now()
		snapshot, err = c.store.Snapshot(ctx, id)
		return snapshot, asOf, err
	}
	if err != nil {
		return nil, time.Time{}, wrap(fmt.Sprintf("%s %q", opSnapshot, id), err)
	}
	return snapshot, asOf, nil
}

// answer calls assemble with the lock held, and reads the contexts that it misses, until it has all of them.
func (c *Cache) answer(ctx context.Context, assemble func(*cacheContents) error) error {
	callCtx, cancel := context.WithTimeout(ctx, c.store.options.Timeout)
	defer cancel()
	for {
		err := c.await(callCtx)
		if err == nil {
			err = c.tryAnswer(assemble)
		}
		if _, missing := errors.AsType[*missingError](err); missing {
			err = c.answerReading(callCtx, assemble)
		}
		if !errors.Is(err, errNotLoaded) {
			return c.explain(ctx, err)
		}
	}
}

// await waits until the cache is loaded, and starts the watch if there is none.
func (c *Cache) await(ctx context.Context) error {
	c.mu.Lock()
	c.lastUsed = c.options.Clock.Now()
	isLoaded, loaded := c.contents != nil, c.loaded
	c.mu.Unlock()
	if isLoaded {
		return nil
	}
	if c.store.isClosed() {
		return ErrClosed
	}
	select {
	case c.startWatch <- struct{}{}:
	default:
	}
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAnswer calls assemble with the lock held. The error is a missingError if a context has to be read before, and errNotLoaded
// if the watch has ended.
func (c *Cache) tryAnswer(assemble func(*cacheContents) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents == nil {
		return errNotLoaded
	}
	return assemble(c.contents)
}

// answerReading is tryAnswer, but reads what is missing. Nothing is evicted for the number of contexts until it has answered.
func (c *Cache) answerReading(ctx context.Context, assemble func(*cacheContents) error) error {
	if err := c.steady.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.steady.Release(1)
	defer c.evictExcess()
	for {
		err := c.tryAnswer(assemble)
		missing, ok := errors.AsType[*missingError](err)
		if !ok {
			return err
		}
		snapshot, err := c.store.snapshotAt(ctx, missing.id, missing.revision)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if c.contents != nil { // They are the same as before: only the watch replaces them, and it waits.
			c.contents.contexts[missing.id] = &cachedContext{snapshot: snapshot, lastUsed: c.lastUsed}
		}
		c.mu.Unlock()
	}
}

// explain returns the error of a call: the caller's own reason to end it or, when it took too long, why the watch is broken.
func (c *Cache) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	c.mu.Lock()
	cause := cmp.Or(c.watchErr, err)
	c.mu.Unlock()
	if errors.Is(cause, ErrUnavailable) || errors.Is(cause, ErrDenied) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

// evictUntilIdle removes idle contexts. It returns when ctx ends or the whole cache is idle.
func (c *Cache) evictUntilIdle(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(max(c.options.Idle/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			if !c.evictBefore(c.options.Clock.Now().Add(-c.options.Idle)) {
				return
			}
		}
	}
}

// evictBefore removes the contexts that were last used before a time. It reports whether the watch is still needed: a caller
// has asked for something since, or changes are reported.
func (c *Cache) evictBefore(limit time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents != nil {
		maps.DeleteFunc(c.contents.contexts, func(_ string, entry *cachedContext) bool { return entry.lastUsed.Before(limit) })
	}
	return c.options.Changed != nil || !c.lastUsed.Before(limit)
}

// evictExcess removes the least recently used contexts when there are more than MaxContexts.
func (c *Cache) evictExcess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.contents != nil && len(c.contents.contexts) > c.options.MaxContexts {
		oldest := ""
		for id, entry := range c.contents.contexts {
			if oldest == "" || entry.lastUsed.Before(c.contents.contexts[oldest].lastUsed) {
				oldest = id
			}
		}
		delete(c.contents.contexts, oldest)
	}
}
