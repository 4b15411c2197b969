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

// Cache answers as a Store does, but from memory: one watch, on everything from /context/ to /healthscope/, keeps the
// contexts that callers ask for current, and each answer is as of one revision. While etcd is unreachable the cache still
// answers, and says how old the answer is. It is safe for concurrent use, and needs Run to run.
type Cache struct {
	store   *Store
	options CacheOptions
	// startWatch holds a token when a caller has asked while the cache did not watch.
	startWatch chan struct{}

	mu sync.Mutex
	// loaded is true while the fields below reflect etcd at the revision. ready is closed when loaded becomes true, and when the
	// cache stops watching before that: then the caller has to start the watch again.
	loaded bool
	ready  chan struct{}
	// revision is the revision of etcd up to which the cache is complete, and asOf is when that was last requested from etcd.
	revision int64
	asOf     time.Time
	// lastUsed is when a caller last asked for anything, and watchErr is why the watch last broke.
	lastUsed time.Time
	watchErr error

	contexts map[string]*cacheEntry
	known    knownContexts
	// subjects is derived from known, and records from own. It is nil, or an entry is absent, after a change of these.
	subjects     map[DeploymentRef][]string
	own          map[DeploymentRef]map[string]*mvccpb.KeyValue
	records      map[DeploymentRef]subjectRecord
	observations observations
}

// cacheEntry is a context in a cache.
type cacheEntry struct {
	// snapshot is nil until it has been read. done is closed when it has been read, or could not be.
	snapshot *Snapshot
	done     chan struct{}
	// pending are the events that are not in the snapshot yet.
	pending  []*clientv3.Event
	lastUsed time.Time
	// waiters is how many calls wait for the entry, or still need it for their answer. It is not evicted while there are any.
	waiters int
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
	c := &Cache{store: s, options: o, startWatch: make(chan struct{}, 1), ready: make(chan struct{})}
	if o.Changed != nil {
		c.startWatch <- struct{}{}
	}
	c.clear()
	return c
}

// Run keeps the cache current until ctx is done or the store is closed. It watches from the first call until the cache has
// been idle for CacheOptions.Idle. If changes are reported, it always watches.
func (c *Cache) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.startWatch:
		}
		c.watchWhileUsed(ctx)
		if ctx.Err() == nil && c.store.closed.Load() {
			return wrap("cannot keep cache", ErrClosed)
		}
	}
}

// watchWhileUsed watches until the cache is idle.
func (c *Cache) watchWhileUsed(ctx context.Context) {
	watchCtx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		c.watchUntilDone(watchCtx)
	})
	group.Go(func() {
		defer cancel()
		c.evict(watchCtx)
	})
	group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// clear removes everything, and wakes all waiters. The caller holds the lock, or is the only user.
func (c *Cache) clear() {
	for _, entry := range c.contexts {
		if entry.snapshot == nil {
			close(entry.done)
		}
	}
	if !c.loaded {
		close(c.ready)
	}
	c.loaded, c.ready, c.watchErr = false, make(chan struct{}), nil
	c.contexts, c.known, c.subjects = map[string]*cacheEntry{}, knownContexts{}, nil
	c.own, c.records = map[DeploymentRef]map[string]*mvccpb.KeyValue{}, map[DeploymentRef]subjectRecord{}
	c.observations = observations{}
}

// View answers as Store.View does. AsOf says how old the answer can be.
func (c *Cache) View(ctx context.Context, subject DeploymentRef, instance string) (View, error) {
	if err := subject.check(); err != nil {
		return View{}, wrap(fmt.Sprintf("cannot read status of %q", subject), err)
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
		if err := view.resolveContexts(instance, c.snapshot); err != nil || view.StatusContext == nil {
			return err
		}
		view.observations = maps.Clone(c.observations[view.StatusContext.ID()])
		return nil
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
	err = c.answer(ctx, func() error {
		if snapshot, err = c.snapshot(id); err != nil {
			return err
		}
		asOf = c.asOf
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

// missingError says that a context has to be read before the cache can answer.
type missingError struct{ id string }

func (e *missingError) Error() string { return fmt.Sprintf("context %q is not in the cache", e.id) }

// answer calls assemble with the lock held, and reads the contexts that it misses, until assemble has all of them.
func (c *Cache) answer(ctx context.Context, assemble func() error) error {
	callCtx, cancel := context.WithTimeout(ctx, c.store.options.Timeout)
	defer cancel()
	var needed []*cacheEntry
	defer func() { c.release(needed) }()
	for {
		if err := c.await(ctx, callCtx); err != nil {
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
		entry, mustFill := c.reserve(missing.id)
		needed = append(needed, entry)
		revision := c.revision
		c.mu.Unlock()
		if mustFill {
			snapshot, err := c.store.snapshotAt(callCtx, missing.id, revision)
			if err := c.complete(missing.id, entry, snapshot, err); err != nil {
				return c.timeoutError(ctx, err)
			}
			continue
		}
		select {
		case <-entry.done:
		case <-callCtx.Done():
			return c.timeoutError(ctx, callCtx.Err())
		}
	}
}

// await waits until the cache is loaded, and starts the watch if there is none.
func (c *Cache) await(ctx, callCtx context.Context) error {
	c.mu.Lock()
	c.lastUsed = c.options.Clock.Now()
	loaded, ready := c.loaded, c.ready
	c.mu.Unlock()
	if loaded {
		return nil
	}
	if c.store.closed.Load() {
		return ErrClosed
	}
	select {
	case c.startWatch <- struct{}{}:
	default:
	}
	select {
	case <-ready:
		return nil
	case <-callCtx.Done():
		return c.timeoutError(ctx, callCtx.Err())
	}
}

// timeoutError returns the error of a call that was not answered in time. ctx is the caller's.
func (c *Cache) timeoutError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	watchErr := c.watchErr
	c.mu.Unlock()
	switch {
	case watchErr == nil || !errors.Is(err, context.DeadlineExceeded):
		return deadlineAsUnavailable(ctx, err)
	case errors.Is(watchErr, ErrUnavailable) || errors.Is(watchErr, ErrDenied):
		return watchErr
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, watchErr)
	}
}

// snapshot returns a context at the cache's revision, or a missingError. The caller holds the lock.
func (c *Cache) snapshot(id string) (*Snapshot, error) {
	entry := c.contexts[id]
	if entry == nil || entry.snapshot == nil {
		return nil, &missingError{id}
	}
	entry.lastUsed = c.lastUsed
	entry.applyPending()
	return entry.snapshot.atRevision(c.revision), nil
}

// record returns the record of a subject. The caller holds the lock.
func (c *Cache) record(subject DeploymentRef) (subjectRecord, error) {
	if record, ok := c.records[subject]; ok {
		return record, nil
	}
	record, err := parseSubject(sortedByKey(c.own[subject]))
	if err == nil && !record.isEmpty() { // Requests for unknown subjects must not fill the memory.
		c.records[subject] = record
	}
	return record, err
}

// bySubject returns the contexts of all subjects. The caller holds the lock.
func (c *Cache) bySubject() map[DeploymentRef][]string {
	if c.subjects == nil {
		c.subjects = c.known.bySubject()
	}
	return c.subjects
}

// reserve returns the entry of a context, and whether the caller has to fill it. The caller holds the lock.
func (c *Cache) reserve(id string) (entry *cacheEntry, mustFill bool) {
	entry = c.contexts[id]
	if entry == nil {
		entry, mustFill = &cacheEntry{done: make(chan struct{}), lastUsed: c.lastUsed}, true
		c.contexts[id] = entry
	}
	entry.waiters++
	return entry, mustFill
}

// release ends the use of entries that reserve has returned.
func (c *Cache) release(needed []*cacheEntry) {
	if len(needed) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range needed {
		entry.waiters--
	}
	c.evictExcess()
}

// complete stores in an entry the snapshot that was read at the revision of its reservation, or removes the entry if err is set.
func (c *Cache) complete(id string, entry *cacheEntry, snapshot *Snapshot, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contexts[id] != entry { // load or clear has replaced the entry, and has woken the waiters.
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
