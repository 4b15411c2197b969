package appcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Defaults of CacheOptions.
const (
	defaultIdle        = 10 * time.Minute
	defaultMaxContexts = 256
)

// CacheOptions say what a Cache keeps.
type CacheOptions struct {
	// Idle is how long a context stays after it was asked for. The default is 10 minutes.
	Idle time.Duration
	// MaxContexts is how many contexts are kept; beyond that, the one that was asked for longest ago goes. The default is 256.
	MaxContexts int
	// Changed is called with the ids of contexts in which something has changed besides the bundles that are saved there, and
	// of those that were made for the same; nil when anything may have. It must not block. With it, the cache watches also before
	// anything is asked for. Nil means that changes are not reported.
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
	// questions are those that contexts are missing for. Run answers them between two changes, or while it waits to watch again, so
	// that it can read the contexts at the revision of the contents.
	questions chan question
	// begin closes begun with the first question, or at once if changes are reported: before that, the cache does not watch.
	begin func()
	begun chan struct{}

	mu sync.Mutex
	// contents is nil until they are loaded. Only Run replaces and changes them.
	contents *contents
	// watchErr is why the watch last broke.
	watchErr error
}

// question is a call that the cache cannot answer from memory.
type question struct {
	ctx    context.Context //nolint:containedctx // It is the caller's, who waits for the answer.
	answer func(*contents) error
	done   chan<- error
}

// NewCache returns a cache of a store. The caller must call Run.
func NewCache(s *Store, o CacheOptions) *Cache {
	o.Idle = cmp.Or(o.Idle, defaultIdle)
	o.MaxContexts = cmp.Or(o.MaxContexts, defaultMaxContexts)
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	begun := make(chan struct{})
	c := &Cache{store: s, options: o, questions: make(chan question), begin: sync.OnceFunc(func() { close(begun) }), begun: begun}
	if o.Changed != nil {
		c.begin()
	}
	return c
}

// View answers as Store.View does. AsOf says how old the answer can be, also that an instance is not found.
func (c *Cache) View(ctx context.Context, subject DeploymentRef, instance string) (view View, err error) {
	if err = subject.check(); err == nil {
		err = c.answer(ctx, func(have *contents) error {
			view, err = have.view(subject, instance, c.cached(have))
			return err
		})
	}
	if errors.Is(err, errCompacted) {
		return c.store.View(ctx, subject, instance)
	}
	return view, wrap(fmt.Sprintf("cannot read status of %q", subject), err)
}

// Snapshot answers as Store.Snapshot does, and returns when etcd was last asked and nothing had changed.
func (c *Cache) Snapshot(ctx context.Context, id string) (snapshot *Snapshot, asOf time.Time, err error) {
	if err = checkName("context id", id); err == nil {
		err = c.answer(ctx, func(have *contents) (err error) {
			asOf = have.asOf
			snapshot, err = c.cached(have)(id)
			return err
		})
	}
	switch {
	case errors.Is(err, errCompacted):
		asOf = time.Now()
		snapshot, err = c.store.Snapshot(ctx, id)
		return snapshot, asOf, err
	case err == nil && len(snapshot.values) == 0:
		err = keyError(ErrNotFound, string(ContextHandle(id)))
	}
	if err != nil {
		return nil, time.Time{}, wrap(fmt.Sprintf("%s %q", opSnapshot, id), err)
	}
	return snapshot, asOf, nil
}

// cached returns a function that returns a context in the contents, or a missingError.
func (c *Cache) cached(have *contents) func(id string) (*Snapshot, error) {
	return func(id string) (*Snapshot, error) { return have.snapshot(id, c.options.Clock.Now()) }
}

// answer answers from memory or, if that is not possible, lets Run do so. The error is the caller's own reason to end the call or,
// when it took too long, why the watch is broken.
func (c *Cache) answer(ctx context.Context, answer func(*contents) error) error {
	err := c.tryAnswer(answer)
	if _, missing := errors.AsType[*missingError](err); !missing {
		return err
	}
	c.begin()
	callCtx, cancel := context.WithTimeout(ctx, c.store.options.Timeout)
	defer cancel()
	done := make(chan error, 1)
	select {
	case c.questions <- question{callCtx, answer, done}:
		err = <-done // It comes soon after the end of callCtx.
	case <-c.store.config.Context.Done():
		return ErrClosed
	case <-callCtx.Done():
		err = callCtx.Err()
	}
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

// tryAnswer answers from memory. The error is a missingError if something has to be read before.
func (c *Cache) tryAnswer(answer func(*contents) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents == nil {
		return &missingError{}
	}
	return answer(c.contents)
}

// answerReading answers a question, and reads the contexts that are missing for it. Nothing is evicted for the number of contexts
// until it has answered.
func (c *Cache) answerReading(q question) error {
	defer c.evictExcess()
	for {
		err := c.tryAnswer(q.answer)
		missing, ok := errors.AsType[*missingError](err)
		if !ok {
			return err
		}
		snapshot, err := c.store.snapshotAt(q.ctx, missing.id, missing.revision)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.contents.contexts[missing.id] = &cachedContext{snapshot: snapshot}
		c.mu.Unlock()
	}
}

// evictIdle removes the contexts that were not asked for within Idle.
func (c *Cache) evictIdle() {
	limit := c.options.Clock.Now().Add(-c.options.Idle)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.contents.contexts, func(_ string, entry *cachedContext) bool { return entry.lastUsed.Before(limit) })
}

// evictExcess removes the least recently used contexts when there are more than MaxContexts.
func (c *Cache) evictExcess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.contents.contexts) > c.options.MaxContexts {
		oldest := ""
		for id, entry := range c.contents.contexts {
			if oldest == "" || entry.lastUsed.Before(c.contents.contexts[oldest].lastUsed) {
				oldest = id
			}
		}
		delete(c.contents.contexts, oldest)
	}
}
