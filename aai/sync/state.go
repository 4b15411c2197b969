package sync

import (
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
	// guards are the restrictions on deletions. Objects know themselves whether they are held.
	guards plan.Guards

	// objects are the objects of which anything is known.
	objects map[aai.Key]*object
	// todo are the objects that may need a request. waiting are those with a failure or a skipped deletion; it may hold others until the
	// end of a pass.
	todo, waiting map[aai.Key]*object
	// owned counts the observed documents by data-source. It includes documents of other owners only if they were read individually.
	owned map[string]int
	// tenantExists is true when the tenant is known to exist.
	tenantExists bool
	// missingTargets are the names of targets of relationships that A&AI did not have at the last request.
	missingTargets map[string]bool
	// limiters limit deletions, by data-source.
	limiters map[string]*limiter
	// counts are the numbers of objects by their reported state.
	counts map[State]int
}

func newTenantState() *tenantState {
	return &tenantState{
		sem: semaphore.NewWeighted(1), wake: make(chan struct{}, 1),
		objects: map[aai.Key]*object{}, todo: map[aai.Key]*object{}, waiting: map[aai.Key]*object{},
		owned: map[string]int{}, missingTargets: map[string]bool{}, limiters: map[string]*limiter{}, counts: map[State]int{},
	}
}

// object is what is known of one object of a tenant. The zero value with a key means that nothing is.
type object struct {
	key aai.Key
	// desired is the desired document; nil when A&AI must not hold one. held is true when the object must be neither written nor deleted.
	desired *aai.Document
	held    bool
	// unacknowledged is the time of the oldest change that A&AI has not acknowledged; zero when there is none.
	unacknowledged time.Time
	// observed is the document in A&AI, as far as is known; nil when there is none. A document that this project wrote after the last read
	// has no ResourceVersion, because A&AI does not return the new version.
	observed *aai.Document
	// uncertain is true when the state in A&AI is not known, for instance because a write got no response.
	uncertain bool
	// failure is why the object could not be finished; the zero value when there is no reason.
	failure failure
	// batchLimit is the maximum number of operations in a request that includes the object; 0 unless the object has failed or was rejected
	// in a bulk request.
	batchLimit int
	// conflict is set when the key belongs to a document of another owner, and skipped when the document should be deleted and is kept.
	conflict *plan.Conflict
	skipped  *plan.Skipped
	// reported is the last reported status.
	reported ObjectStatus
}

// object returns the object with a key, which is created if nothing is known of it.
func (m *tenantState) object(key aai.Key) *object {
	o := m.objects[key]
	if o == nil {
		o = &object{key: key}
		m.objects[key] = o
	}
	return o
}

// documents returns the number of observed documents.
func (m *tenantState) documents() (n int) {
	for _, owned := range m.owned {
		n += owned
	}
	return n
}

// setDesired stores the desired state of an object.
func (m *tenantState) setDesired(o *object, d Desired) {
	m.todo[o.key] = o
	if o.failure.reason == ReasonUnavailable {
		o.failure.retryAt = time.Time{}
	}
	o.desired, o.held = d.Document, d.Held
	if o.unacknowledged.IsZero() {
		o.unacknowledged = d.Seen
	}
}

// observe stores the document that A&AI holds for an object; nil means none.
func (m *tenantState) observe(o *object, d *aai.Document) {
	if o.observed != nil {
		source := o.observed.DataSource
		if m.owned[source]--; m.owned[source] == 0 {
			delete(m.owned, source)
		}
	}
	if o.observed = d; d != nil {
		m.owned[d.DataSource]++
		m.tenantExists = true
	}
}

// applyWrite updates the observed document of an object after a write that A&AI has acknowledged.
func (m *tenantState) applyWrite(o *object, op plan.Operation) {
	var d aai.Document
	if o.observed != nil {
		d = *o.observed
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
		m.observe(o, nil)
		return
	}
	m.observe(o, &d)
}

// settle updates the indices after a pass has visited an object, and drops an object of which nothing is known any more.
func (m *tenantState) settle(o *object) {
	if o.failure.reason == "" && o.skipped == nil {
		delete(m.waiting, o.key)
	}
	if *o == (object{key: o.key}) && m.todo[o.key] == nil {
		delete(m.objects, o.key)
	}
}
