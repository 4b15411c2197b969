package sync

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// tenantState is the state about a tenant between passes. All fields but resync and wake belong to the pass that holds sem.
type tenantState struct {
	// resync is true when a resync was requested.
	resync atomic.Bool
	sem    *semaphore.Weighted
	// wake holds a value when the running pass must read the changes again.
	wake chan struct{}
	// resynced is the time of the last full read that was due; zero when a full read is due.
	resynced time.Time
	// outages is the number of outages at the time of the last full read.
	outages uint64
	// desired holds the desired documents.
	desired map[aai.Key]*aai.Document
	// guards are the restrictions of package plan on deletions and changes.
	guards plan.Guards
	// unacknowledged holds, by object, the time of the oldest change that A&AI has not acknowledged.
	unacknowledged map[aai.Key]time.Time
	// todo are the objects that may need a request.
	todo map[aai.Key]bool

	// observed are the documents in A&AI, as far as is known. A document that this project wrote after the last read has no ResourceVersion, because A&AI does not return the new version.
	observed map[aai.Key]*aai.Document
	// owned counts the documents in observed by data-source. It includes documents of other owners only if they were read individually.
	owned map[string]int
	// tenantExists is true when the tenant is known to exist.
	tenantExists bool
	// uncertain are documents whose state in A&AI is not known, such as those whose write got no response.
	uncertain map[aai.Key]bool

	// failed are objects that could not be finished.
	failed map[aai.Key]failure
	// batchLimits is the maximum number of operations in a request that includes the object. It has only objects that failed or were rejected in a bulk request.
	batchLimits map[aai.Key]int
	// missingTargets are the names of targets of relationships that A&AI did not have at the last request.
	missingTargets map[string]bool
	// conflicts are objects whose key belongs to a document of another owner.
	conflicts map[aai.Key]plan.Conflict
	// skipped are documents that should be deleted and are kept.
	skipped map[aai.Key]plan.Skipped
	// limiters limit deletions, by data-source.
	limiters map[string]*limiter

	// reported is the last reported status of each object.
	reported map[aai.Key]ObjectStatus
	counts   map[State]int
}

func newTenantState() *tenantState {
	return &tenantState{
		sem: semaphore.NewWeighted(1), wake: make(chan struct{}, 1),
		desired: map[aai.Key]*aai.Document{}, guards: plan.Guards{Keys: map[aai.Key]bool{}}, unacknowledged: map[aai.Key]time.Time{}, todo: map[aai.Key]bool{},
		observed: map[aai.Key]*aai.Document{}, owned: map[string]int{}, uncertain: map[aai.Key]bool{},
		failed: map[aai.Key]failure{}, batchLimits: map[aai.Key]int{}, missingTargets: map[string]bool{},
		conflicts: map[aai.Key]plan.Conflict{}, skipped: map[aai.Key]plan.Skipped{}, limiters: map[string]*limiter{},
		reported: map[aai.Key]ObjectStatus{}, counts: map[State]int{},
	}
}

// applyChange stores a change and a requested resync. It returns the objects whose deletion must be decided again.
func (m *tenantState) applyChange(c Change) (redecide []aai.Key) {
	for key, d := range c.Desired {
		m.setDesired(key, d)
	}
	if !maps.Equal(c.Deletions, m.guards.Deletions) || !slices.Equal(c.Existing, m.guards.Existing) {
		m.guards.Deletions, m.guards.Existing = c.Deletions, c.Existing
		for key := range m.skipped {
			m.todo[key] = true
			redecide = append(redecide, key)
		}
	}
	if m.resync.Swap(false) {
		m.resynced = time.Time{}
	}
	return redecide
}

// setDesired stores the desired state of an object.
func (m *tenantState) setDesired(key aai.Key, d Desired) {
	m.todo[key] = true
	if t := m.failed[key]; t.reason == ReasonUnavailable {
		t.retryAt = time.Time{}
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

// observe stores the document that A&AI holds for an object; nil means none.
func (m *tenantState) observe(key aai.Key, d *aai.Document) {
	if before := m.observed[key]; before != nil {
		if m.owned[before.DataSource]--; m.owned[before.DataSource] == 0 {
			delete(m.owned, before.DataSource)
		}
		delete(m.observed, key)
	}
	if d != nil {
		m.observed[key] = d
		m.owned[d.DataSource]++
		m.tenantExists = true
	}
}

// applyWrite updates the observed state after a write that A&AI has acknowledged.
func (m *tenantState) applyWrite(op plan.Operation) {
	var d aai.Document
	if known := m.observed[op.Key]; known != nil {
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
		m.observe(op.Key, nil)
		return
	}
	m.observe(op.Key, &d)
}
