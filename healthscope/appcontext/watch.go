package appcontext

import (
	"cmp"
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// firstDelay and longestDelay bound the time before a watch that broke is begun again.
	firstDelay   = 100 * time.Millisecond
	longestDelay = 5 * time.Second
	// silentIntervals is for how many intervals etcd may leave requests for progress unanswered before the watch is begun again.
	silentIntervals = 5
)

// watch reads everything and follows the changes, again and again, until ctx is done or the store is closed.
func (c *Cache) watch(ctx context.Context) {
	delay := firstDelay
	silent := false // Whether the last watch went silent: then its connection may be dead.
	for ctx.Err() == nil && !c.store.closed.Load() {
		began, client := time.Now(), c.store.client.Load()
		err := c.session(ctx)
		if ctx.Err() != nil || c.store.closed.Load() {
			return
		}
		c.lost(err)
		if silent && errors.Is(err, ErrUnavailable) {
			c.store.drop(client)
		}
		silent = errors.Is(err, errSilent)
		if time.Since(began) > longestDelay {
			delay = firstDelay
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		delay = min(2*delay, longestDelay)
	}
}

// session reads everything and follows the changes until the watch breaks, and returns why.
func (c *Cache) session(ctx context.Context) error {
	revision, err := c.load(ctx)
	if err != nil {
		return err
	}
	limited, done := context.WithTimeout(ctx, c.store.options.Timeout)
	client, err := c.store.connect(limited)
	done()
	if err != nil {
		return translate(ctx, err)
	}
	// A watcher of our own has a stream of its own, on which all answers are about this watch. Without a leader etcd's
	// answers could be old.
	watcher := clientv3.NewWatcher(client)
	defer func() { _ = watcher.Close() }()
	watching, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	silence := time.AfterFunc(silentIntervals*c.store.options.ProgressInterval, func() { cancel(errSilent) })
	defer silence.Stop()
	// It begins with the revision that is known, not behind it: etcd reports no progress to a watch that begins in the future.
	changes := watcher.Watch(watching, contextPrefix, clientv3.WithRange(watchEnd), clientv3.WithRev(revision))
	if err := c.listen(ctx, changes, revision, silence, func() error { return watcher.RequestProgress(watching) }); err != nil {
		return err
	}
	return cmp.Or(context.Cause(watching), error(ErrUnavailable))
}

// listen enters what a watch reports that began at a known revision, until it breaks. It requests progress in each
// interval, since a watch without changes is silent, and puts off silence with each answer.
func (c *Cache) listen(ctx context.Context, changes clientv3.WatchChan, known int64, silence *time.Timer, request func() error) error {
	interval := c.store.options.ProgressInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	// asked is when progress was requested, the first time since etcd has last answered; zero if it was not.
	var asked time.Time
	for {
		select {
		case <-ticker.C:
			if asked.IsZero() {
				asked = time.Now()
			}
			_ = request() // It is repeated: a watch that is still catching up does not answer.
		case r, ok := <-changes:
			if !ok {
				return nil
			}
			if err := r.Err(); err != nil {
				return translate(ctx, err)
			}
			if events := after(known, r.Events); len(events) > 0 {
				// Not the header's revision: that may be ahead of the events while the watch catches up.
				c.apply(events, events[len(events)-1].Kv.ModRevision)
			}
			if r.IsProgressNotify() && !asked.IsZero() {
				c.confirm(r.Header.Revision, asked)
				asked = time.Time{}
				silence.Reset(silentIntervals * interval)
			}
		}
	}
}

// after returns the events behind a revision. Events are in the order of their revisions.
func after(revision int64, events []*clientv3.Event) []*clientv3.Event {
	for len(events) > 0 && events[0].Kv.ModRevision <= revision {
		events = events[1:]
	}
	return events
}
