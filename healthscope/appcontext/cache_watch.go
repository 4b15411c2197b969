package appcontext

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// progressTimeoutIntervals is for how many intervals etcd may leave progress requests unanswered before the watch is restarted.
const progressTimeoutIntervals = 5

// watchBackoff is the delay before a broken watch is restarted. It begins again each minute.
var watchBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: 5 * time.Second}

// watchWhileUsed watches until the cache is idle or ctx ends, and then clears the cache.
func (c *Cache) watchWhileUsed(ctx context.Context) {
	watchCtx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		delay := watchBackoff.DelayWithReset(clock.RealClock{}, time.Minute)
		_ = delay.Until(watchCtx, true, true, func(ctx context.Context) (done bool, _ error) { // It returns when ctx ends.
			broken := c.listAndWatch(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.watchErr = broken // The contents stay, and become stale.
			return false, nil
		})
	})
	c.evictUntilIdle(ctx)
	cancel()
	watch.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents == nil {
		close(c.loaded)
	}
	c.contents, c.loaded, c.watchErr = nil, make(chan struct{}), nil
}

// load reads everything that the cache holds at one revision: the keys under ownPrefix, the list of contexts, and the
// contexts that it holds already.
func (c *Cache) load(ctx context.Context) (revision int64, err error) {
	next := &cacheContents{
		asOf: time.Now(), contexts: map[string]*cachedContext{}, records: map[DeploymentRef]*cachedRecord{}, observations: observations{},
	}
	values, revision, err := c.store.read(ctx, ownPrefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range values {
		next.setOwn(string(kv.Key), kv)
	}
	next.revision = revision
	if next.known, err = c.store.discover(ctx, revision); err != nil {
		return 0, err
	}
	for id, lastUsed := range c.held() {
		snapshot, err := c.store.snapshotAt(ctx, id, revision)
		if err != nil {
			return 0, err
		}
		next.contexts[id] = &cachedContext{snapshot: snapshot, lastUsed: lastUsed}
	}
	if err := c.steady.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer c.steady.Release(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents == nil {
		close(c.loaded)
	}
	c.contents, c.watchErr = next, nil
	return revision, nil
}

// held returns the ids of the contexts in the cache, with the times when they were last used.
func (c *Cache) held() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := map[string]time.Time{}
	if c.contents != nil {
		for id, entry := range c.contents.contexts {
			held[id] = entry.lastUsed
		}
	}
	return held
}

// listAndWatch loads the cache and applies changes until the watch breaks. It returns the reason. It requests progress in each
// interval, since a watch without changes sends nothing.
func (c *Cache) listAndWatch(ctx context.Context) error {
	known, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.report(nil)
	client, err := c.store.connect(ctx)
	if err != nil {
		return translate(ctx, err)
	}
	// A separate watcher has a separate stream, on which all responses are about this watch. Without a leader, etcd's
	// responses could be stale.
	watcher := clientv3.NewWatcher(client)
	defer func() { _ = watcher.Close() }()
	watchCtx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	interval := c.store.options.ProgressInterval
	progressTimeout := time.AfterFunc(progressTimeoutIntervals*interval, func() { cancel(errNoProgress) })
	defer progressTimeout.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	// requestedAt is when progress was first requested since etcd last answered; zero if it was not.
	var requestedAt time.Time
	// The watch begins at the loaded revision, not after it: etcd reports no progress to a watch that begins in the future.
	changes := watcher.Watch(watchCtx, contextPrefix, clientv3.WithRange(watchEnd), clientv3.WithRev(known))
	for {
		select {
		case <-ticker.C:
			if requestedAt.IsZero() {
				requestedAt = time.Now()
			}
			_ = watcher.RequestProgress(watchCtx) // It is repeated: etcd does not answer while the watch is catching up.
		case r, ok := <-changes:
			if !ok {
				return cmp.Or(context.Cause(watchCtx), error(ErrUnavailable))
			}
			if err := r.Err(); err != nil {
				return translate(ctx, err)
			}
			isNew := func(event *clientv3.Event) bool { return event.Kv.ModRevision > known }
			if first := slices.IndexFunc(r.Events, isNew); first >= 0 {
				if err := c.apply(watchCtx, r.Events[first:]); err != nil {
					return err
				}
			}
			if r.IsProgressNotify() && !requestedAt.IsZero() {
				c.confirm(r.Header.Revision, requestedAt)
				requestedAt = time.Time{}
				progressTimeout.Reset(progressTimeoutIntervals * interval)
			}
		}
	}
}

// apply applies the events of a watch, and reports the changes.
func (c *Cache) apply(ctx context.Context, events []*clientv3.Event) error {
	if err := c.steady.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	changed := c.contents.apply(events)
	var ids []string
	if c.options.Changed != nil {
		ids = c.contents.related(changed)
	}
	c.mu.Unlock()
	c.steady.Release(1)
	if len(ids) > 0 {
		c.report(ids)
	}
	return nil
}

// report reports changed contexts; nil means all.
func (c *Cache) report(ids []string) {
	if c.options.Changed != nil {
		c.options.Changed(ids)
	}
}

// confirm records that the cache is complete up to a revision, as etcd has answered to a request made at requestedAt.
func (c *Cache) confirm(revision int64, requestedAt time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contents.revision, c.contents.asOf, c.watchErr = max(c.contents.revision, revision), requestedAt, nil
}
