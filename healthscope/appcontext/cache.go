package appcontext

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
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
	// MaxContexts is how many contexts are kept; beyond that, the one that was asked for longest ago goes. The default is
	// 256. Those that are being asked for stay in any case.
	MaxContexts int
	// Changed is called with the ids of contexts in which something has changed besides the bundles that are saved there, and
	// of those that were made for the same; nil when anything may have. It must not block, nor ask the cache. With it, the
	// cache watches as long as it runs, also while nothing is asked for. Nil means that changes are not reported.
	Changed func(ids []string)
	// Clock measures Idle. The default is that of the machine.
	Clock clock.WithTicker
}

// Cache answers as a Store does, but from memory: it keeps the contexts that are asked for current from one watch, on
// everything from /context/ to /healthscope/, and everything it answers is as of one revision. While etcd is away it still
// answers, and says how old the answer is. It is safe for concurrent use, and works while Run runs.
type Cache struct {
	store   *Store
	options CacheOptions
	// asked holds a token when something was asked for while the cache did not watch.
	asked chan struct{}

	mu sync.Mutex
	// loaded says that what follows is true of etcd at the revision. ready is closed when that becomes so, and when the cache
	// stops following before: then it has to be asked again.
	loaded bool
	ready  chan struct{}
	// revision is that of etcd up to which everything is known, asOf when etcd was last asked about that.
	revision int64
	asOf     time.Time
	// lastAsked is when anything was last asked for, and problem why the watch last broke.
	lastAsked time.Time
	problem   error

	contexts map[string]*cached
	known    knownContexts
	// subjects is made of known, and records of own; nil, or absent, when that has changed.
	subjects map[Subject][]string
	own      map[Subject]map[string]*mvccpb.KeyValue
	records  map[Subject]subjectRecord
	seen     seenBundles
}

// cached is a context in a cache.
type cached struct {
	// snapshot is nil until it has been read; done is closed then, or when it could not be.
	snapshot *Snapshot
	done     chan struct{}
	// pending are the changes that are not in the snapshot yet.
	pending []*clientv3.Event
	asked   time.Time
	// askers is how many wait for it, or have waited and not yet got their answer. Until then it stays.
	askers int
}

// NewCache returns a cache of a store. Run must run.
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
	c := &Cache{store: s, options: o, asked: make(chan struct{}, 1), ready: make(chan struct{})}
	if o.Changed != nil {
		c.asked <- struct{}{}
	}
	c.clear()
	return c
}

// Run keeps the cache current until ctx is done or the store is closed. It watches from the first question on, until
// nothing is asked for any more, unless changes are to be reported.
func (c *Cache) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.asked:
		}
		c.follow(ctx)
		if ctx.Err() == nil && c.store.closed.Load() {
			return failed("cannot keep cache", ErrClosed)
		}
	}
}

// follow watches until nothing is asked for any more.
func (c *Cache) follow(ctx context.Context) {
	watching, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		c.watch(watching)
	})
	group.Go(func() {
		defer cancel()
		c.evict(watching)
	})
	group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// clear removes everything, and wakes who waits for it. The caller holds the lock, or is alone.
func (c *Cache) clear() {
	for _, entry := range c.contexts {
		if entry.snapshot == nil {
			close(entry.done)
		}
	}
	if !c.loaded {
		close(c.ready)
	}
	c.loaded, c.ready, c.problem = false, make(chan struct{}), nil
	c.contexts, c.known, c.subjects = map[string]*cached{}, knownContexts{}, nil
	c.own, c.records = map[Subject]map[string]*mvccpb.KeyValue{}, map[Subject]subjectRecord{}
	c.seen = seenBundles{}
}

// View answers as Store.View does. AsOf says how old the answer can be.
func (c *Cache) View(ctx context.Context, subject Subject, instance string) (View, error) {
	if err := subject.check(); err != nil {
		return View{}, failed(fmt.Sprintf("cannot read status of %q", subject), err)
	}
	var view View
	err := c.answer(ctx, func() error {
		record, err := c.record(subject)
		if err != nil {
			return err
		}
		view = View{Revision: c.revision, AsOf: c.asOf, Info: record.info, Contexts: record.contexts}
		if record.isEmpty() {
			view.Contexts = c.bySubject()[subject]
		}
		view.inForce = c.known.inForce(view.Contexts)
		if err := view.fill(instance, c.snapshot); err != nil || view.StatusContext == nil {
			return err
		}
		view.seen = maps.Clone(c.seen[view.StatusContext.ID()])
		return nil
	})
	if errors.Is(err, errCompacted) {
		return c.store.View(ctx, subject, instance)
	}
	return view, failed(fmt.Sprintf("cannot read status of %q", subject), err)
}

// Snapshot answers as Store.Snapshot does, and returns when etcd was last asked and nothing had changed.
func (c *Cache) Snapshot(ctx context.Context, id string) (snapshot *Snapshot, asOf time.Time, err error) {
	if err := checkName("context id", id); err != nil {
		return nil, time.Time{}, err
	}
	err = c.answer(ctx, func() error {
		if snapshot, err = c.snapshot(id); err != nil {
			return err
		}
		asOf = c.asOf
		if len(snapshot.values) == 0 {
			return about(ErrNotFound, string(ContextHandle(id)))
		}
		return nil
	})
	if errors.Is(err, errCompacted) {
		asOf = time.Now()
		snapshot, err = c.store.Snapshot(ctx, id)
		return snapshot, asOf, err
	}
	if err != nil {
		return nil, time.Time{}, failed(fmt.Sprintf("%s %q", opSnapshot, id), err)
	}
	return snapshot, asOf, nil
}

// missingError says that a context has to be read before there is an answer.
type missingError struct{ id string }

func (e *missingError) Error() string { return fmt.Sprintf("context %q is not in the cache", e.id) }

// answer calls assemble, with the lock held, until everything that it needs is there.
func (c *Cache) answer(ctx context.Context, assemble func() error) error {
	limited, cancel := context.WithTimeout(ctx, c.store.options.Timeout)
	defer cancel()
	var needed []*cached
	defer func() { c.release(needed) }()
	for {
		if err := c.await(ctx, limited); err != nil {
			return err
		}
		c.mu.Lock()
		if !c.loaded {
			c.mu.Unlock()
			continue
		}
		err := assemble()
		missing, ok := errors.AsType[*missingError](err)
		if !ok {
			c.mu.Unlock()
			return err
		}
		entry, mine := c.reserve(missing.id)
		needed = append(needed, entry)
		revision := c.revision
		c.mu.Unlock()
		if mine {
			snapshot, err := c.store.snapshotAt(limited, missing.id, revision)
			if err := c.fill(missing.id, entry, snapshot, err); err != nil {
				return c.away(ctx, err)
			}
			continue
		}
		select {
		case <-entry.done:
		case <-limited.Done():
			return c.away(ctx, limited.Err())
		}
	}
}

// await waits until the cache has something to answer from.
func (c *Cache) await(ctx, limited context.Context) error {
	c.mu.Lock()
	c.lastAsked = c.options.Clock.Now()
	loaded, ready := c.loaded, c.ready
	c.mu.Unlock()
	if loaded {
		return nil
	}
	if c.store.closed.Load() {
		return ErrClosed
	}
	select {
	case c.asked <- struct{}{}:
	default:
	}
	select {
	case <-ready:
		return nil
	case <-limited.Done():
		return c.away(ctx, limited.Err())
	}
}

// away returns an error for an answer that did not come in time; ctx is the caller's.
func (c *Cache) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	problem := c.problem
	c.mu.Unlock()
	switch {
	case problem == nil || !errors.Is(err, context.DeadlineExceeded):
		return late(ctx, err)
	case errors.Is(problem, ErrUnavailable) || errors.Is(problem, ErrDenied):
		return problem
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, problem)
	}
}

// snapshot returns a context at the cache's revision, or a missingError. The caller holds the lock.
func (c *Cache) snapshot(id string) (*Snapshot, error) {
	entry := c.contexts[id]
	if entry == nil || entry.snapshot == nil {
		return nil, &missingError{id}
	}
	entry.asked = c.lastAsked
	entry.catchUp()
	return entry.snapshot.at(c.revision), nil
}

// record returns what is kept of a subject. The caller holds the lock.
func (c *Cache) record(subject Subject) (subjectRecord, error) {
	if record, ok := c.records[subject]; ok {
		return record, nil
	}
	record, err := parseSubject(sortedByKey(c.own[subject]))
	if err == nil && !record.isEmpty() { // Strangers' questions must not fill the memory.
		c.records[subject] = record
	}
	return record, err
}

// bySubject returns the contexts of all subjects. The caller holds the lock.
func (c *Cache) bySubject() map[Subject][]string {
	if c.subjects == nil {
		c.subjects = c.known.bySubject()
	}
	return c.subjects
}

// reserve returns the entry of a context, and whether it is the caller who has to fill it. The caller holds the lock.
func (c *Cache) reserve(id string) (entry *cached, mine bool) {
	entry = c.contexts[id]
	if entry == nil {
		entry, mine = &cached{done: make(chan struct{}), asked: c.lastAsked}, true
		c.contexts[id] = entry
	}
	entry.askers++
	return entry, mine
}

// release lets go of entries that reserve has returned.
func (c *Cache) release(needed []*cached) {
	if len(needed) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range needed {
		entry.askers--
	}
	c.shrink()
}

// fill completes an entry with what was read at the revision of its reservation, and what has changed since.
func (c *Cache) fill(id string, entry *cached, snapshot *Snapshot, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contexts[id] != entry { // Everything was read again meanwhile; who waits was woken.
		return nil
	}
	if err != nil {
		delete(c.contexts, id)
		close(entry.done)
		return err
	}
	entry.snapshot = snapshot
	close(entry.done)
	return nil
}
