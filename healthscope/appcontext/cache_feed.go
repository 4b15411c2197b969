package appcontext

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// load reads everything that the cache holds at one revision: what is ours, what contexts there are, and those that are
// being asked for.
func (c *Cache) load(ctx context.Context) (int64, error) {
	asked := time.Now()
	values, revision, err := c.store.read(ctx, ownPrefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	known, err := c.store.discover(ctx, revision)
	if err != nil {
		return 0, err
	}
	contexts := map[string]*Snapshot{}
	for _, id := range c.held() {
		if contexts[id], err = c.store.snapshotAt(ctx, id, revision); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.contexts
	c.clear()
	c.revision, c.asOf, c.known = revision, asked, known
	for id, snapshot := range contexts {
		if entry := before[id]; entry != nil { // Else it was evicted meanwhile.
			c.contexts[id] = &cached{snapshot: snapshot, asked: entry.asked}
		}
	}
	for _, kv := range values {
		c.keep(kv)
	}
	c.loaded = true
	close(c.ready)
	c.notify(nil)
	return revision, nil
}

// held returns the contexts that have been read.
func (c *Cache) held() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id, entry := range c.contexts {
		if entry.snapshot != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// keep enters what is ours. The caller holds the lock.
func (c *Cache) keep(kv *mvccpb.KeyValue) {
	c.seen.put(string(kv.Key), kv)
	if subject, _, ok := subjectOf(string(kv.Key[len(ownPrefix):])); ok {
		if c.own[subject] == nil {
			c.own[subject] = map[string]*mvccpb.KeyValue{}
		}
		c.own[subject][string(kv.Key)] = kv
		delete(c.records, subject)
	}
}

// sortedByKey returns values in the order of their keys.
func sortedByKey(values map[string]*mvccpb.KeyValue) []*mvccpb.KeyValue {
	return slices.SortedFunc(maps.Values(values), func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
}

// apply enters changes.
func (c *Cache) apply(events []*clientv3.Event, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	touched := map[string]struct{}{}
	defer func() { c.notify(c.related(touched)) }()
	for _, event := range events {
		key := string(event.Kv.Key)
		if rest, ok := strings.CutPrefix(key, ownPrefix); ok {
			c.applyOwn(event, rest, touched)
			continue
		}
		id, parts, ok := splitKey(key)
		if !ok {
			continue
		}
		if !isSavedBundle(parts) {
			touched[id] = struct{}{}
		}
		if entry := c.contexts[id]; entry != nil {
			entry.change(event)
		}
		kv := event.Kv
		if event.Type == mvccpb.DELETE {
			kv = nil
		}
		if c.known.put(key, kv) {
			c.subjects = nil
		}
	}
	c.revision = revision
}

// isSavedBundle reports whether the parts of a key after the context's id lead to the bundle that is saved of a cluster.
func isSavedBundle(parts []string) bool {
	return len(parts) == 5 && parts[4] == partStatus && kindOfParts(parts[:4]) == kindCluster
}

// related returns the ids of contexts, and of all that were made for the same as one of them. The caller holds the lock.
func (c *Cache) related(touched map[string]struct{}) []string {
	if c.options.Changed == nil {
		return nil
	}
	all := maps.Clone(touched)
	for id := range touched {
		if e := c.known[id]; e != nil && e.meta != (Subject{}) {
			for _, other := range c.bySubject()[e.meta] {
				all[other] = struct{}{}
			}
		}
	}
	return slices.AppendSeq([]string{}, maps.Keys(all))
}

// notify reports changed contexts; nil means all. The caller holds the lock.
func (c *Cache) notify(ids []string) {
	if c.options.Changed != nil && (ids == nil || len(ids) > 0) {
		c.options.Changed(ids)
	}
}

// applyOwn enters a change of what is ours, and adds to touched the contexts of a subject whose history it changes.
func (c *Cache) applyOwn(event *clientv3.Event, rest string, touched map[string]struct{}) {
	if subject, _, ok := subjectOf(rest); ok {
		for _, id := range c.bySubject()[subject] {
			touched[id] = struct{}{}
		}
	}
	if event.Type != mvccpb.DELETE {
		c.keep(event.Kv)
		return
	}
	c.seen.put(string(event.Kv.Key), nil)
	if subject, _, ok := subjectOf(rest); ok {
		delete(c.own[subject], string(event.Kv.Key))
		delete(c.records, subject)
		if len(c.own[subject]) == 0 {
			delete(c.own, subject)
		}
	}
}

// change remembers a change until the snapshot is there and is asked for, or there are as many changes as values: a snapshot is
// made by copying the one before, so it must not be made for each change.
func (e *cached) change(event *clientv3.Event) {
	e.pending = append(e.pending, event)
	if e.snapshot != nil && len(e.pending) > len(e.snapshot.values) {
		e.catchUp()
	}
}

// catchUp enters the pending changes in the snapshot.
func (e *cached) catchUp() {
	if len(e.pending) > 0 {
		e.snapshot, e.pending = e.snapshot.with(e.pending), nil
	}
}

// confirm notes that everything up to a revision is known, as etcd has answered a question that was asked at a time.
func (c *Cache) confirm(revision int64, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision, c.asOf, c.problem = max(c.revision, revision), asked, nil
}

// lost notes why the watch broke. What is there stays, and grows old.
func (c *Cache) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = err
}

// evict removes the contexts that are not asked for, until nothing is asked for.
func (c *Cache) evict(ctx context.Context) {
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

// evictBefore removes the contexts that were last asked for before a time, and reports whether anything was asked for since, or
// changes are to be reported.
func (c *Cache) evictBefore(limit time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, entry := range c.contexts {
		if entry.snapshot != nil && entry.asked.Before(limit) {
			delete(c.contexts, id)
		}
	}
	return c.options.Changed != nil || !c.lastAsked.Before(limit)
}

// shrink removes the contexts that were asked for longest ago when there are too many. The caller holds the lock.
func (c *Cache) shrink() {
	for held := len(c.contexts); held > c.options.MaxContexts; held-- {
		oldest := ""
		for id, entry := range c.contexts {
			if entry.askers == 0 && (oldest == "" || entry.asked.Before(c.contexts[oldest].asked)) {
				oldest = id
			}
		}
		delete(c.contexts, oldest)
	}
}
