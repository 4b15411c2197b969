package appcontext

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// progressTimeoutIntervals is for how many intervals etcd may leave progress requests unanswered before the watch is restarted.
const progressTimeoutIntervals = 5

// watchBackoff is the delay before a broken watch is restarted. It begins again each minute.
var watchBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: 5 * time.Second}

// Run keeps the cache current, from the first call until ctx is done or the store is closed.
func (c *Cache) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.store.config.Context, func() { cancel(ErrClosed) })() //nolint:contextcheck // It ends when the store is closed.
	select {
	case <-c.begun:
	case <-ctx.Done():
	}
	delay := watchBackoff.DelayWithReset(clock.RealClock{}, time.Minute)
	for ctx.Err() == nil {
		broken := c.listAndWatch(ctx)
		c.mu.Lock()
		c.watchErr = broken // The contents stay, and become stale.
		c.mu.Unlock()
		c.pause(ctx, delay())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contents = nil
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return wrap("cannot keep cache", ErrClosed)
	}
	return nil
}

// pause waits, and meanwhile answers questions about the contents that there are: etcd may answer reads although the watch is broken.
func (c *Cache) pause(ctx context.Context, delay time.Duration) {
	questions := c.questions
	if c.contents == nil {
		questions = nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case q := <-questions:
			q.done <- c.answerReading(q)
		}
	}
}

// load reads everything that the cache holds at one revision: the keys under ownPrefix, the list of contexts, and the
// contexts that it holds already and that are not idle.
func (c *Cache) load(ctx context.Context) (revision int64, err error) {
	asOf, held := time.Now(), map[string]*cachedContext{}
	if c.contents != nil {
		c.evictIdle()
		held = c.contents.contexts
	}
	values, revision, err := c.store.read(ctx, ownPrefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	next := newContents(revision, asOf, values)
	if err := c.store.discover(ctx, next.known, revision); err != nil {
		return 0, err
	}
	for id := range held {
		snapshot, err := c.store.snapshotAt(ctx, id, revision)
		if err != nil {
			return 0, err
		}
		next.contexts[id] = &cachedContext{snapshot: snapshot}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, entry := range next.contexts {
		entry.lastUsed = held[id].lastUsed // A caller may have asked since.
	}
	c.contents, c.watchErr = next, nil
	return revision, nil
}

// listAndWatch loads the cache and applies changes until the watch breaks. It returns the reason. It requests progress in each
// interval, since a watch without changes sends nothing.
func (c *Cache) listAndWatch(ctx context.Context) error {
	known, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.report(nil)
	idle := c.options.Clock.NewTicker(c.options.Idle / 4)
	defer idle.Stop()
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
		case <-idle.C():
			c.evictIdle()
		case q := <-c.questions:
			q.done <- c.answerReading(q)
		case r, ok := <-changes:
			if !ok {
				return cmp.Or(context.Cause(watchCtx), error(ErrUnavailable))
			}
			if err := r.Err(); err != nil {
				return translate(ctx, err)
			}
			isNew := func(event *clientv3.Event) bool { return event.Kv.ModRevision > known }
			if first := slices.IndexFunc(r.Events, isNew); first >= 0 {
				c.apply(r.Events[first:])
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
func (c *Cache) apply(events []*clientv3.Event) {
	c.mu.Lock()
	changed := c.contents.apply(events)
	var ids []string
	if c.options.Changed != nil {
		ids = c.contents.related(changed)
	}
	c.mu.Unlock()
	if len(ids) > 0 {
		c.report(ids)
	}
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
