package sync

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// memory is what is remembered about a tenant between passes. All but resync belongs to the pass that holds turn.
type memory struct {
	// resync is true when a resync was asked for.
	resync atomic.Bool
	turn   chan struct{}
	// woken has something when the pass under way is to take in changes.
	woken chan struct{}
	// resynced is when the tenant was last read in full because that was due; zero when it is due again.
	resynced time.Time
	// outages is how many outages there had been when it was last read in full.
	outages uint64
	// desired is what A&AI is to hold.
	desired map[aai.Key]*aai.Document
	// guards are what is not to be touched.
	guards plan.Guards
	// unacknowledged is, by object, when the oldest change was seen that A&AI has not acknowledged.
	unacknowledged map[aai.Key]time.Time
	// todo are the objects that may need something.
	todo map[aai.Key]bool
	knowledge
	failures
	// reported is what was last said of each object.
	reported map[aai.Key]Object
	counts   map[State]int
}

func newMemory() *memory {
	return &memory{
		turn:           make(chan struct{}, 1),
		woken:          make(chan struct{}, 1),
		desired:        map[aai.Key]*aai.Document{},
		guards:         plan.Guards{Keys: map[aai.Key]bool{}},
		unacknowledged: map[aai.Key]time.Time{},
		todo:           map[aai.Key]bool{},
		knowledge:      knowledge{known: map[aai.Key]*aai.Document{}, owned: map[string]int{}, uncertain: map[aai.Key]bool{}},
		failures: failures{
			failed: map[aai.Key]failure{}, limits: map[aai.Key]int{}, absent: map[string]bool{},
			conflicts: map[aai.Key]plan.Conflict{}, skipped: map[aai.Key]plan.Skipped{}, limiters: map[string]*limiter{},
		},
		reported: map[aai.Key]Object{},
		counts:   map[State]int{},
	}
}

func (m *memory) lock(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memory) unlock() { <-m.turn }

// open takes in what has changed, and whether a resync was asked for. It returns the objects whose deletion is to be decided again.
func (m *memory) open(c Change) (again []aai.Key) {
	for key, d := range c.Desired {
		m.set(key, d)
	}
	if !maps.Equal(c.Deletions, m.guards.Deletions) || !slices.Equal(c.Existing, m.guards.Existing) {
		m.guards.Deletions, m.guards.Existing = c.Deletions, c.Existing
		for key := range m.skipped {
			m.todo[key] = true
			again = append(again, key)
		}
	}
	if m.resync.Swap(false) {
		m.resynced = time.Time{}
	}
	return again
}

// set notes what is to become of an object.
func (m *memory) set(key aai.Key, d Desired) {
	m.todo[key] = true
	if t := m.failed[key]; t.reason == ReasonUnavailable {
		t.until = time.Time{}
		m.failed[key] = t
	}
	delete(m.desired, key)
	delete(m.guards.Keys, key)
	if d.Document != nil {
		m.desired[key] = d.Document
	}
	if d.Held {
		m.guards.Keys[key] = true
	}
	if _, waits := m.unacknowledged[key]; !waits && !d.Seen.IsZero() {
		m.unacknowledged[key] = d.Seen
	}
}

// knowledge is what A&AI holds, as far as is known.
type knowledge struct {
	// known is what A&AI holds. A document of ours that was written since it was read has no ResourceVersion: A&AI does not tell it.
	known map[aai.Key]*aai.Document
	// owned counts the documents in known by data-source. Those of others are among them only when they were read one by one.
	owned map[string]int
	// exists is true when the tenant is known to exist.
	exists bool
	// lost is true when A&AI has once said that it does not.
	lost bool
	// uncertain are documents of which the last word is not known, such as those whose write got no answer.
	uncertain map[aai.Key]bool
}

// learn notes what A&AI holds of an object; nil for nothing.
func (k *knowledge) learn(key aai.Key, d *aai.Document) {
	if before := k.known[key]; before != nil {
		if k.owned[before.DataSource]--; k.owned[before.DataSource] == 0 {
			delete(k.owned, before.DataSource)
		}
		delete(k.known, key)
	}
	if d != nil {
		k.known[key] = d
		k.owned[d.DataSource]++
		k.exists = true
	}
}

// apply brings the knowledge up to date after a write that A&AI has acknowledged.
func (m *memory) apply(op plan.Operation) {
	var d aai.Document
	if known := m.known[op.Key]; known != nil {
		d = *known
	}
	d.ResourceVersion = ""
	links := slices.Clone(d.RelationshipList.Relationships)
	switch op.Verb {
	case plan.Create:
		d = op.Document
	case plan.Update:
		d = op.Document
		d.RelationshipList.Relationships = links
	case plan.Relate:
		links = append(links, op.Relationship)
		d.RelationshipList.Relationships = links
	case plan.Unrelate:
		target := op.Relationship.Target()
		d.RelationshipList.Relationships = slices.DeleteFunc(links, func(r aai.Relationship) bool { return r.Target() == target })
	case plan.Delete:
		m.learn(op.Key, nil)
		return
	}
	m.learn(op.Key, &d)
}
