package appcontext

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/sets"
)

// contents is what is known of etcd up to a revision: everything besides the contexts in a Cache, whose lock guards it, and what a
// view needs in Store.View.
type contents struct {
	// revision is the revision of etcd, and asOf is when etcd was last asked and had nothing newer.
	revision int64
	asOf     time.Time

	contexts map[string]*cachedContext
	known    knownContexts
	// subjects is derived from known. It is nil after a change of that.
	subjects     map[DeploymentRef][]string
	records      map[DeploymentRef]*cachedRecord
	observations observations
}

// cachedContext is a context that was asked for.
type cachedContext struct {
	snapshot *Snapshot
	// pending are the events that are not in the snapshot yet.
	pending  []*clientv3.Event
	lastUsed time.Time
}

// cachedRecord is what is kept of a subject: its values, by key, and what they mean; nil until someone asks.
type cachedRecord struct {
	values map[string]*mvccpb.KeyValue
	parsed *subjectRecord
}

// newContents returns contents with values under ownPrefix.
func newContents(revision int64, asOf time.Time, own []*mvccpb.KeyValue) *contents {
	c := &contents{
		revision: revision, asOf: asOf,
		contexts: map[string]*cachedContext{}, known: knownContexts{}, records: map[DeploymentRef]*cachedRecord{}, observations: observations{},
	}
	for _, kv := range own {
		c.setOwn(string(kv.Key), kv)
	}
	return c
}

// missingError says that a context has to be read at a revision before the cache can answer, or everything without an id.
type missingError struct {
	id       string
	revision int64
}

func (e *missingError) Error() string { return fmt.Sprintf("context %q is not in the cache", e.id) }

// snapshot returns a context, or a missingError.
func (c *contents) snapshot(id string, now time.Time) (*Snapshot, error) {
	entry := c.contexts[id]
	if entry == nil {
		return nil, &missingError{id, c.revision}
	}
	entry.lastUsed = now
	entry.applyPending()
	return entry.snapshot.atRevision(c.revision), nil
}

// view returns the view of a subject. get returns a context.
func (c *contents) view(subject DeploymentRef, instance string, get func(id string) (*Snapshot, error)) (View, error) {
	record, err := c.record(subject)
	if err != nil {
		return View{}, err
	}
	view := View{Revision: c.revision, AsOf: c.asOf, Info: record.info, Contexts: record.contexts}
	if record.isEmpty() {
		view.Contexts = c.bySubject()[subject]
	}
	if err := view.resolveContexts(cmp.Or(record.info.lastContextID(), c.known.inForce(view.Contexts)), instance, get); err != nil {
		return view, err
	}
	if view.StatusContext != nil {
		view.observations = maps.Clone(c.observations[view.StatusContext.ID()])
	}
	return view, nil
}

// record returns the record of a subject.
func (c *contents) record(subject DeploymentRef) (subjectRecord, error) {
	r := c.records[subject]
	if r == nil {
		return subjectRecord{}, nil
	}
	if r.parsed == nil {
		byKey := func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) }
		parsed, err := parseSubject(slices.SortedFunc(maps.Values(r.values), byKey))
		if err != nil {
			return subjectRecord{}, err
		}
		r.parsed = &parsed
	}
	return *r.parsed, nil
}

// bySubject returns the contexts of all subjects.
func (c *contents) bySubject() map[DeploymentRef][]string {
	if c.subjects == nil {
		c.subjects = c.known.bySubject()
	}
	return c.subjects
}

// apply applies the events of a watch. It returns the ids of the contexts in which something has changed besides saved bundles,
// or in the history of their subject.
func (c *contents) apply(events []*clientv3.Event) sets.Set[string] {
	changed := sets.Set[string]{}
	for _, event := range events {
		key, kv := string(event.Kv.Key), event.Kv
		if event.Type == mvccpb.DELETE {
			kv = nil
		}
		if strings.HasPrefix(key, ownPrefix) {
			if subject, ok := c.setOwn(key, kv); ok {
				changed.Insert(c.bySubject()[subject]...)
			}
			continue
		}
		id, _, ok := splitKey(key)
		if !ok {
			continue
		}
		if entry := c.contexts[id]; entry != nil {
			entry.addPending(event)
		}
		if c.known.update(key, kv) {
			c.subjects = nil
		}
		if _, isBundle := placeOfStatus(key); !isBundle {
			changed.Insert(id)
		}
	}
	c.revision = events[len(events)-1].Kv.ModRevision // The revision of the response may be ahead of its events.
	return changed
}

// related returns the ids of contexts, and of all contexts with the same subject, sorted.
func (c *contents) related(ids sets.Set[string]) []string {
	all := ids.Clone()
	for id := range ids {
		if e := c.known[id]; e != nil {
			all.Insert(c.bySubject()[e.meta]...)
		}
	}
	return sets.List(all)
}

// setOwn applies a value under ownPrefix, or its deletion when kv is nil. It returns the subject whose record it belongs to, if
// any.
func (c *contents) setOwn(key string, kv *mvccpb.KeyValue) (DeploymentRef, bool) {
	c.observations.update(key, kv)
	subject, _, ok := subjectOf(key[len(ownPrefix):])
	if !ok {
		return DeploymentRef{}, false
	}
	r := c.records[subject]
	if r == nil {
		r = &cachedRecord{values: map[string]*mvccpb.KeyValue{}}
		c.records[subject] = r
	}
	r.parsed = nil
	if kv != nil {
		r.values[key] = kv
	} else {
		delete(r.values, key)
	}
	if len(r.values) == 0 {
		delete(c.records, subject)
	}
	return subject, true
}

// addPending keeps an event until a caller asks for the snapshot, or there are more events than values in it: a new snapshot
// is a copy of the previous one, so it must not be made for each event.
func (e *cachedContext) addPending(event *clientv3.Event) {
	e.pending = append(e.pending, event)
	if len(e.pending) > len(e.snapshot.values) {
		e.applyPending()
	}
}

func (e *cachedContext) applyPending() {
	if len(e.pending) > 0 {
		e.snapshot, e.pending = e.snapshot.withEvents(e.pending), nil
	}
}
