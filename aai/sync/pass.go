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
	// planned holds the objects that needed work when the pass began to work. urgent holds those that have changed since.
	planned, urgent queue
	// slow is true when the work takes long.
	slow bool
	// inFlight are the objects of running requests, with the desired document at the start of the request.
	inFlight map[aai.Key]*aai.Document
	// waiting are, by targets, the objects that wait while another object finds out whether these exist.
	waiting map[string][]aai.Key
	// givenUp are the objects that this pass does not try again.
	givenUp map[aai.Key]bool
	// missing are the dependencies that A&AI does not have, with the error that reported it.
	missing map[string]error
	// conflictRetries counts the retries of an object after a conflict.
	conflictRetries map[aai.Key]int
	// fresh are the objects that this pass has read, or written in a version that it knew; all of them when listed is set.
	fresh  map[aai.Key]bool
	listed bool
	// listing is true while the tenant is being read.
	listing bool
	// acknowledged is when A&AI acknowledged the last write to an object.
	acknowledged map[aai.Key]time.Time
	// toReport are the objects whose status may have changed.
	toReport map[aai.Key]bool
	// lags are those of objects that have changed again since they were written.
	lags []time.Duration
	// stale is true when objects exist that were not in the list, so that the tenant must be read again. That happens at most once in a pass,
	// because a key that belongs to another owner makes every list look stale. relisted is true after that.
	stale, relisted bool
	// unfinished is true when the write time ended before everything was written.
	unfinished bool
	// haltErr is why the pass ends early.
	haltErr error
}

// newPass returns a pass over a tenant with the given state.
func (s *Syncer) newPass(tenant aai.Tenant, m *tenantState, changes func() Change) *pass {
	p := &pass{
		Syncer: s, tenant: tenant, changes: changes, tenantState: m,
		inFlight: map[aai.Key]*aai.Document{}, waiting: map[string][]aai.Key{}, givenUp: map[aai.Key]bool{}, missing: map[string]error{},
		conflictRetries: map[aai.Key]int{}, fresh: map[aai.Key]bool{}, acknowledged: map[aai.Key]time.Time{}, toReport: map[aai.Key]bool{},
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
	steps := p.nextSteps(maps.Keys(p.todo))
	if !listed && p.listIsCheaper(steps) {
		steps = p.relist(ctx)
	}
	p.work(ctx, steps)
	if p.stale && p.haltErr == nil {
		p.stale, p.relisted = false, true
		p.work(ctx, p.relist(ctx))
	}
}

// relist reads the tenant in full, and returns the steps after that.
func (p *pass) relist(ctx context.Context) []step {
	p.list(ctx)
	p.receive()
	return p.nextSteps(maps.Keys(p.todo))
}

// receive stores the changes, unless the pass is halted, and returns the sorted objects that must be decided again because of them. During the
// first or a requested full read it does not return objects that were not desired before: at a start, the desired objects arrive little by
// little, and a list costs less than individual reads.
func (p *pass) receive() (changed []aai.Key) {
	if p.haltErr != nil {
		return nil
	}
	c := p.changes()
	if p.haltErr = p.check(c.Desired); p.haltErr != nil {
		return nil
	}
	for key, d := range c.Desired {
		if d.Held == p.guards.Keys[key] && reflect.DeepEqual(d.Document, p.desired[key]) {
			continue
		}
		if !p.listing || !p.resynced.IsZero() || p.desired[key] != nil {
			changed = append(changed, key)
		}
		if _, written := p.acknowledged[key]; written {
			if lag, known := p.lag(key, p.statusOf(key)); known {
				p.lags = append(p.lags, lag)
			}
		}
		p.toReport[key] = true
		delete(p.givenUp, key)
	}
	changed = append(changed, p.applyChange(c)...)
	slices.SortFunc(changed, aai.Key.Compare)
	return changed
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
	if deadline, ok := ctx.Deadline(); ok && len(p.acknowledged)+len(p.givenUp) > 0 && time.Until(deadline) <= p.options.WriteTime/4 {
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
		clear(p.givenUp)
	}
}

// list reads the tenant in full.
func (p *pass) list(ctx context.Context) {
	outages := p.options.Client.Outages()
	var documents []aai.Document
	var err error
	clear(p.fresh)
	p.workWhileListing(ctx, func() { documents, err = p.options.Client.ListK8sResources(ctx, p.tenant, p.options.Plan.Owner) })
	if err != nil {
		p.stop(err)
		return
	}
	before := p.observed
	p.observed = make(map[aai.Key]*aai.Document, len(documents))
	p.owned, p.tenantExists = map[string]int{}, false
	p.listed, p.outages = true, outages
	for i := range documents {
		key := aai.Key{Tenant: p.tenant, ID: documents[i].ID}
		p.observe(key, &documents[i])
		p.markTodo(key)
	}
	for key := range p.fresh { // Its page may be older.
		p.observe(key, before[key])
	}
	maps.DeleteFunc(p.uncertain, func(key aai.Key, _ bool) bool { // A list has no documents of others, to whom a place may belong where ours was refused.
		return !p.fresh[key] && (p.observed[key] != nil || p.failed[key].conflictCount == 0)
	})
	for key := range before {
		if p.observed[key] == nil {
			p.markTodo(key)
		}
	}
	for key := range p.desired {
		p.markTodo(key)
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
				p.work(ctx, p.nextSteps(slices.Values(changed)))
			}
		}
	}
}

// markTodo queues an object and includes it in the report.
func (p *pass) markTodo(key aai.Key) { p.todo[key], p.toReport[key] = true, true }

// nextStep returns the next step for an object, and reports whether there is one. It removes an object that needs nothing from todo.
func (p *pass) nextStep(key aai.Key) (s step, ready bool) {
	if _, inFlight := p.inFlight[key]; inFlight { // It is looked at again when its request is over.
		return step{}, false
	}
	delete(p.conflicts, key)
	delete(p.skipped, key)
	t := p.failed[key]
	switch {
	case p.givenUp[key] && t.reason != ReasonMissingDependency: // The next pass tries it again.
		return step{}, false
	case p.givenUp[key], p.guards.Keys[key], p.rejected(key), t.reason == ReasonUnavailable && !t.due(p.options.Clock()):
		delete(p.todo, key)
		return step{}, false
	case p.waitsForList(key):
		return step{}, false
	case p.uncertain[key], p.listing && !p.fresh[key]:
		return step{read: true, op: plan.Operation{Key: key}}, true
	}
	d := p.options.Plan.Decide(key, p.desired[key], p.observed[key], p.guards)
	if d.Deletes() {
		d = p.limitDeletion(key, d)
	}
	if d.Conflict != nil {
		p.conflicts[key] = *d.Conflict
	}
	if d.Skipped != nil {
		p.skipped[key] = *d.Skipped
	}
	ops := slices.DeleteFunc(d.Operations, p.waitsForDependency)
	if len(ops) == 0 {
		delete(p.todo, key)
		return step{}, false
	}
	op := ops[0]
	if err := p.missingDependency(op); err != nil {
		p.fail(op, err, 1)
		delete(p.todo, key)
		return step{}, false
	}
	name := targets(op)
	if others, probed := p.waiting[name]; probed {
		p.waiting[name] = append(others, key)
		return step{}, false
	}
	return step{op: op, read: p.mustReadFirst(op)}, true
}

// waitsForList reports whether an object must wait until the tenant has been read. Deletions must, because their limit depends on the number of
// documents.
func (p *pass) waitsForList(key aai.Key) bool {
	return p.listing && (p.desired[key] == nil || !p.fresh[key] && len(p.fresh) >= maxReadsWhileListing)
}

// limitDeletion returns the decision about a deletion after the deletion limit.
func (p *pass) limitDeletion(key aai.Key, d plan.Decision) plan.Decision {
	source := p.observed[key].DataSource
	if !p.guards.Limits(source) {
		return d
	}
	now := p.options.Clock()
	if p.limiters[source] == nil {
		p.limiters[source] = &limiter{plan.NewDeletionLimiter(p.owned[source], p.options.Plan.Limit), now}
	}
	if p.limiters[source].take(key, now) {
		return d
	}
	return plan.Decision{Skipped: p.limiters[source].Skipped(key, source)}
}

// waitsForDependency reports whether an operation waits for a missing dependency.
func (p *pass) waitsForDependency(op plan.Operation) bool {
	t := p.failed[op.Key]
	return hasDependency(op) && t.reason == ReasonMissingDependency && !t.due(p.options.Clock())
}

// hasDependency reports whether an operation depends on objects that others must create.
func hasDependency(op plan.Operation) bool { return op.Verb == plan.Create || op.Verb == plan.Relate }

// mustReadFirst reports whether a document must be read before an operation on it. A&AI accepts an update and a deletion only with the version
// that they are based on. It compares no version when it changes a relationship, so that document, which may have another owner now, must have
// been read in this pass.
func (p *pass) mustReadFirst(op plan.Operation) bool {
	switch op.Verb {
	case plan.Relate, plan.Unrelate:
		return !p.listed && !p.fresh[op.Key]
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
	return reads > 1 && reads*100 > len(p.observed)
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
