package sync

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// maxReadsWhileListing is the maximum number of objects that are read individually because they change while the tenant is listed. Others wait
// for the list.
const maxReadsWhileListing = 20

// maxConflictRetries is how often a pass reads an object again because others have changed it.
const maxConflictRetries = 2

// pass is one pass over a tenant. Workers take objects from queues, decide what to do about each, and do it. The object is then queued again, and
// the next decision uses the result. So an object that differs from its observed state needs no special handling: it is read, and decided
// again.
type pass struct {
	*Syncer

	tenant aai.Tenant
	// changes returns the changes of the desired state and the guards since its last call.
	changes func() Change

	mu sync.Mutex // guards the rest while workers are at work
	// idle wakes workers that wait for requests of other workers.
	idle *sync.Cond
	*tenantState
	// visits are the objects that the pass has looked at, or that have changed.
	visits map[aai.Key]*visit
	// planned holds the objects that needed work when the pass began to work. urgent holds those that have changed since.
	planned, urgent queue
	// inFlight is the number of running requests.
	inFlight int
	// slow is true when the work takes long.
	slow bool
	// awaitingProbe are, by targets, the objects that wait while another object finds out whether these exist.
	awaitingProbe map[string][]*visit
	// missing are the dependencies that A&AI does not have, with the error that reported it.
	missing map[string]error
	// listing is true while the tenant is being read, and listed afterwards.
	listing, listed bool
	// fresh is the number of fresh objects.
	fresh int
	// lags are those of objects that have changed again since they were written.
	lags []time.Duration
	// stale is true when objects exist that were not in the list, so that the tenant must be read again. That happens at most once in a pass,
	// because a key that belongs to another owner makes every list look stale. relisted is true after that.
	stale, relisted bool
	// tried is true once an object was written or given up, and unfinished when the write time ended before everything was written.
	tried, unfinished bool
	// haltErr is why the pass ends early.
	haltErr error
}

// visit is what a pass has done with an object.
type visit struct {
	*object

	// inFlight is true while a request with the object runs, and sent is the desired document at its start.
	inFlight bool
	sent     *aai.Document
	// givenUp is true when the pass does not try the object again.
	givenUp bool
	// conflictRetries counts the retries after a conflict.
	conflictRetries int
	// fresh is true when the pass has read the object, or written it in a version that it knew.
	fresh bool
	// acknowledged is when A&AI acknowledged the last write; zero when there was none.
	acknowledged time.Time
}

// changedInFlight reports whether the desired document has changed since the start of the request that is in flight.
func (v *visit) changedInFlight() bool { return v.inFlight && v.sent != v.desired }

// newPass returns a pass over a tenant with the given state.
func (s *Syncer) newPass(tenant aai.Tenant, m *tenantState, changes func() Change) *pass {
	p := &pass{
		Syncer: s, tenant: tenant, changes: changes, tenantState: m,
		visits: map[aai.Key]*visit{}, awaitingProbe: map[string][]*visit{}, missing: map[string]error{},
	}
	p.idle = sync.NewCond(&p.mu)
	return p
}

// run makes the pass.
func (p *pass) run(ctx context.Context) {
	p.receive()
	if p.haltErr == nil {
		p.haltErr = p.prober.check(ctx)
	}
	listed := p.haltErr == nil && p.listDue()
	if listed {
		p.refresh(ctx)
		p.receive()
	}
	p.requeueDue(p.options.Clock())
	steps := p.nextSteps(p.visitTodo())
	if !listed && p.listIsCheaper(steps) {
		steps = p.relist(ctx)
	}
	p.work(ctx, steps)
	if p.stale && p.haltErr == nil {
		p.stale, p.relisted = false, true
		p.work(ctx, p.relist(ctx))
	}
}

// visit returns the visit to an object, which begins if there was none.
func (p *pass) visit(key aai.Key) *visit {
	v := p.visits[key]
	if v == nil {
		v = &visit{object: p.object(key)}
		p.visits[key] = v
	}
	return v
}

// visitTodo returns the visits to the objects that may need a request; none when the pass is halted, because it does nothing about them then.
func (p *pass) visitTodo() []*visit {
	if p.haltErr != nil {
		return nil
	}
	visits := make([]*visit, 0, len(p.todo))
	for key := range p.todo {
		visits = append(visits, p.visit(key))
	}
	return visits
}

// relist reads the tenant in full, and returns the steps after that.
func (p *pass) relist(ctx context.Context) []step {
	p.list(ctx)
	p.receive()
	return p.nextSteps(p.visitTodo())
}

// receive stores the changes, unless the pass is halted, and returns the sorted objects that must be decided again because of them. During the
// first or a requested full read it does not return objects that were not desired before: at a start, the desired objects arrive little by
// little, and a list costs less than individual reads.
func (p *pass) receive() (changed []*visit) {
	if p.haltErr != nil {
		return nil
	}
	c := p.changes()
	if p.haltErr = p.check(c.Desired); p.haltErr != nil {
		return nil
	}
	for key, d := range c.Desired {
		v := p.visit(key)
		isNew := v.desired == nil
		if p.change(v, d) && (!p.listing || !p.resynced.IsZero() || !isNew) {
			changed = append(changed, v)
		}
	}
	if !maps.Equal(c.Deletions, p.guards.Deletions) || !slices.Equal(c.Existing, p.guards.Existing) {
		p.guards = plan.Guards{Deletions: c.Deletions, Existing: c.Existing}
		for key, o := range p.waiting {
			if o.skipped != nil {
				p.todo[key] = o
				changed = append(changed, p.visit(key))
			}
		}
	}
	if !p.listing && p.resync.Swap(false) { // A list that is being read may be older than the request: the tenant is listed again after it.
		p.resynced = time.Time{}
	}
	slices.SortFunc(changed, func(a, b *visit) int { return a.key.Compare(b.key) })
	return slices.Compact(changed) // An object can change while its deletion is decided again.
}

// change stores the desired state of an object, and reports whether it differs from the one before.
func (p *pass) change(v *visit, d Desired) (differs bool) {
	if differs = d.Held != v.held || !reflect.DeepEqual(d.Document, v.desired); differs {
		if !v.acknowledged.IsZero() {
			if lag, known := v.lag(p.statusOf(v.object)); known {
				p.lags = append(p.lags, lag)
			}
		}
		v.givenUp = false
		if v.failure.reason == ReasonMissingDependency && !sameRelationships(v.desired, d.Document) {
			v.failure = failure{} // What it needs now may exist.
		}
	}
	p.setDesired(v.object, d)
	return differs
}

// sameRelationships reports whether both are documents with the same relationships.
func sameRelationships(a, b *aai.Document) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.RelationshipList, b.RelationshipList)
}

// check returns an error for documents of another tenant or another data-owner.
func (p *pass) check(changed map[aai.Key]Desired) error {
	for key, d := range changed {
		switch {
		case key.Tenant != p.tenant:
			return fmt.Errorf("document %q is of tenant %q", key.ID, key.Tenant)
		case d.Document == nil:
		case key.ID != d.Document.ID:
			return fmt.Errorf("document %q has the id %q", key.ID, d.Document.ID)
		case d.Document.DataOwner != p.options.Plan.Owner:
			return fmt.Errorf("document %q has the data-owner %q, not %q", key.ID, d.Document.DataOwner, p.options.Plan.Owner)
		}
	}
	return nil
}

// writeTimeOver reports whether no further request may begin, so that the running ones can end within the write time. A pass that ends so is no
// outage: A&AI responds, and there is only much to write.
func (p *pass) writeTimeOver(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && p.tried && time.Until(deadline) <= p.options.WriteTime/4 {
		p.unfinished = true
	}
	return p.unfinished
}

// listDue reports whether the tenant must be read in full. After an outage it must, because A&AI may have been restored from a backup.
func (p *pass) listDue() bool {
	return p.resynced.IsZero() || p.outages != p.options.Client.Outages() || !p.options.Clock().Before(p.nextResync(p.resynced))
}

// refresh reads the tenant in full, and retries objects that wait or were rejected.
func (p *pass) refresh(ctx context.Context) {
	p.list(ctx)
	if p.haltErr == nil {
		p.resynced = p.options.Clock() // What takes longer to read than Resync would else be read all the time.
		p.retryAll()
		for _, v := range p.visits {
			v.givenUp = false
		}
	}
}

// list reads the tenant in full.
func (p *pass) list(ctx context.Context) {
	outages := p.options.Client.Outages()
	var documents []aai.Document
	var err error
	for _, v := range p.visits {
		v.fresh = false
	}
	p.fresh = 0
	p.workWhileListing(ctx, func() { documents, err = p.options.Client.ListK8sResources(ctx, p.tenant, p.options.Plan.Owner) })
	if err != nil {
		p.stop(err)
		return
	}
	listed := make(map[aai.Key]*aai.Document, len(documents))
	for i := range documents {
		key := aai.Key{Tenant: p.tenant, ID: documents[i].ID}
		listed[key] = &documents[i]
		p.visit(key)
	}
	p.owned, p.tenantExists = map[string]int{}, false
	p.listed, p.outages = true, outages
	for key, o := range p.objects {
		p.todo[key] = o
		d := listed[key]
		if p.visit(key).fresh { // Its page may be older.
			d = o.observed
		} else if d != nil || o.failure.conflictCount == 0 { // A list has no documents of others, to whom a place may belong where ours was refused.
			o.uncertain = false
		}
		o.observed = nil
		p.observe(o, d)
	}
}

// workWhileListing calls read, and works on objects that change until read returns.
func (p *pass) workWhileListing(ctx context.Context, read func()) {
	p.listing = true
	defer func() { p.listing = false }()
	listDone := make(chan struct{})
	go func() {
		defer close(listDone)
		read()
	}()
	for {
		select {
		case <-listDone:
			return
		case <-p.wake:
			for changed := p.receive(); len(changed) > 0; changed = p.receive() {
				p.work(ctx, p.nextSteps(changed))
			}
		}
	}
}

// markFresh records that the pass knows the current version of an object.
func (p *pass) markFresh(v *visit) {
	if !v.fresh {
		v.fresh = true
		p.fresh++
	}
}

// nextStep returns the next step for an object, and reports whether there is one. It removes an object that needs nothing from todo.
func (p *pass) nextStep(v *visit) (s step, ready bool) {
	if v.inFlight { // It is looked at again when its request is over.
		return step{}, false
	}
	v.conflict, v.skipped = nil, nil
	reason := v.failure.reason
	switch {
	case v.givenUp && reason != ReasonMissingDependency: // The next pass tries it again.
		return step{}, false
	case v.givenUp, v.held, v.rejected(), reason == ReasonUnavailable && !v.failure.due(p.options.Clock()):
		delete(p.todo, v.key)
		return step{}, false
	case p.waitsForList(v):
		return step{}, false
	case v.uncertain, p.listing && !v.fresh:
		return step{visit: v, read: true, op: plan.Operation{Key: v.key}}, true
	}
	op, needed := p.decide(v)
	if !needed {
		delete(p.todo, v.key)
		return step{}, false
	}
	if err := p.missingDependency(op); err != nil {
		p.fail(op, err, 1)
		delete(p.todo, v.key)
		return step{}, false
	}
	name := targets(op)
	if others, probed := p.awaitingProbe[name]; probed {
		p.awaitingProbe[name] = append(others, v)
		return step{}, false
	}
	return step{visit: v, op: op, read: p.mustReadFirst(v, op)}, true
}

// decide returns the next operation on an object that need not wait for a dependency, and reports whether there is one.
func (p *pass) decide(v *visit) (op plan.Operation, needed bool) {
	d := p.options.Plan.Decide(v.key, v.desired, v.observed, p.guards)
	if d.Deletes() {
		d = p.limitDeletion(v.object, d)
	}
	if v.conflict, v.skipped = d.Conflict, d.Skipped; v.skipped != nil {
		p.waiting[v.key] = v.object
	}
	waits := v.failure.reason == ReasonMissingDependency && !v.failure.due(p.options.Clock())
	for _, op := range d.Operations {
		if !waits || !hasDependency(op) {
			return op, true
		}
	}
	return plan.Operation{}, false
}

// waitsForList reports whether an object must wait until the tenant has been read. Deletions must, because their limit depends on the number of
// documents.
func (p *pass) waitsForList(v *visit) bool {
	return p.listing && (v.desired == nil || !v.fresh && p.fresh >= maxReadsWhileListing)
}

// limitDeletion returns the decision about a deletion after the deletion limit.
func (p *pass) limitDeletion(o *object, d plan.Decision) plan.Decision {
	source := o.observed.DataSource
	if !p.guards.Limits(source) {
		return d
	}
	now := p.options.Clock()
	if p.limiters[source] == nil {
		p.limiters[source] = &limiter{plan.NewDeletionLimiter(p.owned[source], p.options.Plan.Limit), now}
	}
	if p.limiters[source].take(o.key, now) {
		return d
	}
	return plan.Decision{Skipped: p.limiters[source].Skipped(o.key, source)}
}

// hasDependency reports whether an operation depends on objects that others must create.
func hasDependency(op plan.Operation) bool { return op.Verb == plan.Create || op.Verb == plan.Relate }

// mustReadFirst reports whether a document must be read before an operation on it. A&AI accepts an update and a deletion only with the version
// that they are based on. It compares no version when it changes a relationship, so that document, which may have another owner now, must have
// been read in this pass.
func (p *pass) mustReadFirst(v *visit, op plan.Operation) bool {
	switch op.Verb {
	case plan.Relate, plan.Unrelate:
		return !p.listed && !v.fresh
	case plan.Update, plan.Delete:
		return op.ResourceVersion == ""
	case plan.Create:
	}
	return false
}

// listIsCheaper reports whether steps read so many documents that a full read of the tenant costs less. A hundred documents of a list cost about
// as much as one individual read.
func (p *pass) listIsCheaper(steps []step) bool {
	reads, probes := 0, map[string]bool{}
	for _, s := range steps {
		name := targets(s.op)
		if s.read && !probes[name] {
			reads++
		}
		probes[name] = p.missingTargets[name] // Of all that need it, one is read at first.
	}
	return reads > 1 && reads*100 > p.documents()
}

// checkTenant reads whether the tenant exists, if that is not known and several objects must be created there. It returns false if the read fails.
func (p *pass) checkTenant(ctx context.Context, steps []step) bool {
	creates := func(s step) bool { return s.op.Verb == plan.Create }
	first := slices.IndexFunc(steps, creates)
	if p.tenantExists || first < 0 || !slices.ContainsFunc(steps[first+1:], creates) { // A single creation finds it out itself.
		return true
	}
	if p.tenantExists, p.haltErr = p.options.Client.HasTenant(ctx, p.tenant); !p.tenantExists && p.haltErr == nil {
		p.missing[p.tenant.Path()] = p.missingTenant(aai.Error{Op: aai.OpTenant, URI: p.tenant.Path(), Status: http.StatusNotFound, Code: aai.CodeNodeNotFound, Kind: aai.MissingDependency})
	}
	return p.haltErr == nil
}
