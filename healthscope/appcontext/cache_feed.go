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

// load reads everything that the cache holds at one revision: the keys under ownPrefix, the list of contexts, and the
// contexts that the cache holds.
func (c *Cache) load(ctx context.Context) (int64, error) {
	requestedAt := time.Now()
	values, revision, err := c.store.read(ctx, ownPrefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	known, err := c.store.discover(ctx, revision)
	if err != nil {
		return 0, err
	}
	contexts := map[string]*Snapshot{}
	for _, id := range c.loadedContexts() {
		if contexts[id], err = c.store.snapshotAt(ctx, id, revision); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.contexts
	c.clear()
	c.revision, c.asOf, c.known = revision, requestedAt, known
	for id, snapshot := range contexts {
		if entry := before[id]; entry != nil { // Else it was evicted meanwhile.
			c.contexts[id] = &cacheEntry{snapshot: snapshot, lastUsed: entry.lastUsed}
		}
	}
	for _, kv := range values {
		c.putOwn(kv)
	}
	c.loaded = true
	close(c.ready)
	c.notify(nil)
	return revision, nil
}

// loadedContexts returns the contexts that have been read.
func (c *Cache) loadedContexts() []string {
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

// putOwn stores a value under ownPrefix. The caller holds the lock.
func (c *Cache) putOwn(kv *mvccpb.KeyValue) {
	c.observations.update(string(kv.Key), kv)
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

// apply applies the events of a watch.
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
			entry.addPending(event)
		}
		kv := event.Kv
		if event.Type == mvccpb.DELETE {
			kv = nil
		}
		if c.known.update(key, kv) {
			c.subjects = nil
		}
	}
	c.revision = revision
}

// isSavedBundle reports whether the parts of a key after the context's id lead to the saved bundle of a cluster.
func isSavedBundle(parts []string) bool {
	return len(parts) == 5 && parts[4] == partStatus && kindOfParts(parts[:4]) == kindCluster
}

// related returns the ids of contexts, and of all contexts with the same subject. The caller holds the lock.
func (c *Cache) related(touched map[string]struct{}) []string {
	if c.options.Changed == nil {
		return nil
	}
	all := maps.Clone(touched)
	for id := range touched {
		if e := c.known[id]; e != nil && e.meta != (DeploymentRef{}) {
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

// applyOwn applies a change under ownPrefix. If it changes the history of a subject, it adds the contexts of that to touched.
func (c *Cache) applyOwn(event *clientv3.Event, rest string, touched map[string]struct{}) {
	if subject, _, ok := subjectOf(rest); ok {
		for _, id := range c.bySubject()[subject] {
			touched[id] = struct{}{}
		}
	}
	if event.Type != mvccpb.DELETE {
		c.putOwn(event.Kv)
		return
	}
	c.observations.update(string(event.Kv.Key), nil)
	if subject, _, ok := subjectOf(rest); ok {
		delete(c.own[subject], string(event.Kv.Key))
		delete(c.records, subject)
		if len(c.own[subject]) == 0 {
			delete(c.own, subject)
		}
	}
}

// addPending keeps an event until a caller asks for the snapshot, or there are more events than values in it: a new snapshot
// is a copy of the previous one, so it must not be made for each event.
func (e *cacheEntry) addPending(event *clientv3.Event) {
	e.pending = append(e.pending, event)
	if e.snapshot != nil && len(e.pending) > len(e.snapshot.values) {
		e.applyPending()
	}
}

// applyPending applies the pending events to the snapshot.
func (e *cacheEntry) applyPending() {
	if len(e.pending) > 0 {
		e.snapshot, e.pending = e.snapshot.withEvents(e.pending), nil
	}
}

// confirm records that the cache is complete up to a revision, as etcd has answered to a request made at requestedAt.
func (c *Cache) confirm(revision int64, requestedAt time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision, c.asOf, c.watchErr = max(c.revision, revision), requestedAt, nil
}

// setWatchError records why the watch broke. The contents stay, and become stale.
func (c *Cache) setWatchError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchErr = err
}

// evict removes idle contexts. It returns when ctx ends or the whole cache is idle.
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

// evictBefore removes the contexts that were last used before a time. It reports whether the watch is still needed: a caller
// has asked for something since, or changes are reported.
func (c *Cache) evictBefore(limit time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, entry := range c.contexts {
		if entry.snapshot != nil && entry.lastUsed.Before(limit) {
			delete(c.contexts, id)
		}
	}
	return c.options.Changed != nil || !c.lastUsed.Before(limit)
}

// evictExcess removes the least recently used contexts when there are more than MaxContexts. The caller holds the lock.
func (c *Cache) evictExcess() {
	for held := len(c.contexts); held > c.options.MaxContexts; held-- {
		oldest := ""
		for id, entry := range c.contexts {
			if entry.waiters == 0 && (oldest == "" || entry.lastUsed.Before(c.contexts[oldest].lastUsed)) {
				oldest = id
			}
		}
		delete(c.contexts, oldest)
	}
}
