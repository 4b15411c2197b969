package appcontext

import (
	"cmp"
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// minBackoff and maxBackoff bound the delay before a broken watch is restarted.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// progressTimeoutIntervals is for how many intervals etcd may leave progress requests unanswered before the watch is restarted.
	progressTimeoutIntervals = 5
)

// watchUntilDone calls listAndWatch with a backoff until ctx is done or the store is closed.
func (c *Cache) watchUntilDone(ctx context.Context) {
	backoff := minBackoff
	stalled := false // True when the last watch reported no progress: its connection may be dead.
	for ctx.Err() == nil && !c.store.closed.Load() {
		started, client := time.Now(), c.store.client.Load()
		err := c.listAndWatch(ctx)
		if ctx.Err() != nil || c.store.closed.Load() {
			return
		}
		c.setWatchError(err)
		if stalled && errors.Is(err, ErrUnavailable) {
			c.store.discardClient(client)
		}
		stalled = errors.Is(err, errNoProgress)
		if time.Since(started) > maxBackoff {
			backoff = minBackoff
		}
		timer := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		backoff = min(2*backoff, maxBackoff)
	}
}

// listAndWatch loads the cache and applies changes until the watch breaks. It returns the reason.
func (c *Cache) listAndWatch(ctx context.Context) error {
	revision, err := c.load(ctx)
	if err != nil {
		return err
	}
	connectCtx, cancelConnect := context.WithTimeout(ctx, c.store.options.Timeout)
	client, err := c.store.connect(connectCtx)
	cancelConnect()
	if err != nil {
		return translate(ctx, err)
	}
	// A separate watcher has a separate stream, on which all responses are about this watch. Without a leader, etcd's
	// responses could be stale.
	watcher := clientv3.NewWatcher(client)
	defer func() { _ = watcher.Close() }()
	watchCtx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	progressTimeout := time.AfterFunc(progressTimeoutIntervals*c.store.options.ProgressInterval, func() { cancel(errNoProgress) })
	defer progressTimeout.Stop()
	// The watch begins at the loaded revision, not after it: etcd reports no progress to a watch that begins in the future.
	changes := watcher.Watch(watchCtx, contextPrefix, clientv3.WithRange(watchEnd), clientv3.WithRev(revision))
	if err := c.handleWatch(ctx, changes, revision, progressTimeout, func() error { return watcher.RequestProgress(watchCtx) }); err != nil {
		return err
	}
	return cmp.Or(context.Cause(watchCtx), error(ErrUnavailable))
}

// handleWatch applies the events of a watch that began at a known revision, until it breaks. It requests progress in each
// interval, since a watch without changes sends nothing, and resets progressTimeout with each answer.
func (c *Cache) handleWatch(ctx context.Context, changes clientv3.WatchChan, known int64, progressTimeout *time.Timer, request func() error) error {
	interval := c.store.options.ProgressInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	// requestedAt is when progress was first requested since etcd last answered; zero if it was not.
	var requestedAt time.Time
	for {
		select {
		case <-ticker.C:
			if requestedAt.IsZero() {
				requestedAt = time.Now()
			}
			_ = request() // It is repeated: etcd does not answer while the watch is catching up.
		case r, ok := <-changes:
			if !ok {
				return nil
			}
			if err := r.Err(); err != nil {
				return translate(ctx, err)
			}
			if events := eventsAfter(known, r.Events); len(events) > 0 {
				// The header's revision may be ahead of the events while the watch catches up.
				c.apply(events, events[len(events)-1].Kv.ModRevision)
			}
			if r.IsProgressNotify() && !requestedAt.IsZero() {
				c.confirm(r.Header.Revision, requestedAt)
				requestedAt = time.Time{}
				progressTimeout.Reset(progressTimeoutIntervals * interval)
			}
		}
	}
}

// eventsAfter returns the events after a revision. Events are in the order of their revisions.
func eventsAfter(revision int64, events []*clientv3.Event) []*clientv3.Event {
	for len(events) > 0 && events[0].Kv.ModRevision <= revision {
		events = events[1:]
	}
	return events
}
