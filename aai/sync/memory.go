package sync

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// memory is what is remembered about a tenant between passes. All but forgotten belongs to whoever holds turn.
type memory struct {
	turn      chan struct{}
	forgotten atomic.Bool
	// resynced is when the tenant was last read in full because that was due; zero for never.
	resynced time.Time
	// listed is when it was last read in full for whatever reason.
	listed time.Time
	// known is what A&AI holds. A document of ours that was written since it was read has no ResourceVersion: A&AI does not tell it.
	known map[aai.Key]aai.Document
	// seen is when a document was last read or written, if that was after listed.
	seen map[aai.Key]time.Time
	// uncertain are documents of which the last word is not known, such as those whose write got no answer.
	uncertain map[aai.Key]bool
	// parked are objects that wait for what they depend on.
	parked map[aai.Key]parking
	// dead are objects that A&AI will not take.
	dead map[aai.Key]deadLetter
	// failing are objects whose last request failed in a way that may pass.
	failing map[aai.Key]error
}

// parking says why an object waits and when to try it again.
type parking struct {
	err   error
	until time.Time
}

// deadLetter says why A&AI will not take an object, and what it was offered; nil for the deletion.
type deadLetter struct {
	err  error
	want *aai.Document
}

func newMemory() *memory {
	m := &memory{turn: make(chan struct{}, 1), failing: map[aai.Key]error{}}
	m.retryAll()
	m.learn(nil)
	return m
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

// retryAll forgets what was put off or given up.
func (m *memory) retryAll() {
	m.parked = map[aai.Key]parking{}
	m.dead = map[aai.Key]deadLetter{}
}

// learn replaces all knowledge by documents just read.
func (m *memory) learn(documents map[aai.Key]aai.Document) {
	m.known = documents
	m.seen = map[aai.Key]time.Time{}
	m.uncertain = map[aai.Key]bool{}
}

// age returns how old the knowledge of a document is.
func (m *memory) age(key aai.Key, now time.Time) time.Duration {
	at := m.listed
	if seen := m.seen[key]; seen.After(at) {
		at = seen
	}
	return now.Sub(at)
}

// given says whether an object is in the dead letters for just this document; nil for its deletion.
func (m *memory) given(key aai.Key, want *aai.Document) bool {
	letter, ok := m.dead[key]
	return ok && reflect.DeepEqual(letter.want, want)
}

// prune forgets the troubles of objects that need nothing any more.
func (m *memory) prune(remaining map[aai.Key]bool) {
	settled := func(key aai.Key) bool { return !remaining[key] }
	maps.DeleteFunc(m.parked, func(key aai.Key, _ parking) bool { return settled(key) })
	maps.DeleteFunc(m.dead, func(key aai.Key, _ deadLetter) bool { return settled(key) })
	maps.DeleteFunc(m.failing, func(key aai.Key, _ error) bool { return settled(key) })
}

// apply brings the knowledge up to date after a write that A&AI has acknowledged.
func (m *memory) apply(op plan.Operation, now time.Time) {
	d := m.known[op.Key]
	d.ResourceVersion = ""
	links := slices.Clone(d.RelationshipList.Relationships)
	switch op.Verb {
	case plan.Create:
		m.known[op.Key] = op.Document
	case plan.Update:
		m.known[op.Key] = d.Apply(op.Patch)
	case plan.Relate:
		links = append(links, op.Relationship)
		d.RelationshipList.Relationships = links
		m.known[op.Key] = d
	case plan.Unrelate:
		target := op.Relationship.Target()
		d.RelationshipList.Relationships = slices.DeleteFunc(links, func(r aai.Relationship) bool { return r.Target() == target })
		m.known[op.Key] = d
	case plan.Delete:
		delete(m.known, op.Key)
	}
	if op.Verb == plan.Create || op.Verb == plan.Update && op.Patch.Labels != nil {
		m.seen[op.Key] = now
	}
}
