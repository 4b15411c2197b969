package sync

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// maxMeanwhile bounds how many objects that change while a tenant is read are not kept waiting: each is read alone.
const maxMeanwhile = 20

// maxConflicts bounds how often a pass reads an object again because others have changed it.
const maxConflicts = 2

// pass is one pass over a tenant. Workers take objects from queues, decide what to do about each, and do it; then the object
// is queued again, and decided with what was learnt. So an object that turns out to be other than what was known needs no
// treatment of its own: it is read, and the next decision is right.
type pass struct {
	options Options
	bulk    *atomic.Int32
	probing *probing
	alone   time.Time
	tenant  aai.Tenant
	// changes returns what has changed of what is desired and held since it was called last.
	changes func() Change

	mu sync.Mutex // guards the rest while workers are at work
	// idle wakes workers that wait for requests of others.
	idle *sync.Cond
	*memory
	// planned are the objects that needed something when the work began, and urgent those that have changed since, which isUrgent has, too.
	planned, urgent queue
	isUrgent        map[aai.Key]bool
	// slow is true when the work takes long.
	slow bool
	// busy are the objects of requests under way, with what was desired when these began.
	busy map[aai.Key]*aai.Document
	// waiting are objects that wait for another that finds out, by name, whether what all of them need is there now.
	waiting map[string][]aai.Key
	// settled are the objects that this pass has given up.
	settled map[aai.Key]bool
	// missing are, by name, what objects depend on and A&AI does not have.
	missing map[string]error
	// tried counts how often an object was started again.
	tried map[aai.Key]int
	// fresh are the objects that this pass has read, or written in a version that it knew; all of them when listed is set.
	fresh  map[aai.Key]bool
	listed bool
	// listing is true while the tenant is being read.
	listing bool
	// acked is when A&AI acknowledged the last write to an object.
	acked map[aai.Key]time.Time
	// changed are the objects whose standing may be another now.
	changed map[aai.Key]bool
	// lags are those of objects that have changed again since they were written.
	lags []time.Duration
	// trust is how far the last list is to be trusted.
	trust trust
	// unfinished is true when the time to write was over before all was written.
	unfinished bool
	// halt is why the pass ends early.
	halt error
}

// trust says how far the last list of a tenant is to be trusted. It changes once in a pass at most: a place that is taken
// by another owner contradicts the list, too, whenever it is read.
type trust int

const (
	// trusted means that nothing speaks against it.
	trusted trust = iota
	// contradicted means that objects exist which were not in it, so that the tenant is to be read again.
	contradicted
	// readAgain means that the tenant has been read again for that.
	readAgain
)

// newPass returns a pass over what is remembered about a tenant.
func (s *Syncer) newPass(tenant aai.Tenant, m *memory, changes func() Change) *pass {
	p := &pass{
		options: s.options, bulk: &s.bulk, probing: s.probing, alone: s.alone, tenant: tenant, changes: changes, memory: m,
		busy: map[aai.Key]*aai.Document{}, waiting: map[string][]aai.Key{}, settled: map[aai.Key]bool{}, missing: map[string]error{},
		tried: map[aai.Key]int{}, fresh: map[aai.Key]bool{}, acked: map[aai.Key]time.Time{}, changed: map[aai.Key]bool{},
	}
	p.idle = sync.NewCond(&p.mu)
	return p
}

// run does the pass.
func (p *pass) run(ctx context.Context) {
	p.receive()
	if p.halt == nil {
		p.halt = p.probing.check(ctx)
	}
	listed := p.halt == nil && p.due()
	if listed {
		p.refresh(ctx)
		p.receive()
	}
	p.requeueDue(p.options.Clock(), p.options.DeletionPause)
	steps := p.steps(maps.Keys(p.todo))
	if !listed && p.listIsCheaper(steps) {
		steps = p.listAgain(ctx)
	}
	p.work(ctx, steps)
	if p.trust == contradicted && p.halt == nil {
		p.trust = readAgain
		p.work(ctx, p.listAgain(ctx))
	}
}

// listAgain reads the tenant in full, and returns what is to be done then.
func (p *pass) listAgain(ctx context.Context) []step {
	p.list(ctx)
	p.receive()
	return p.steps(maps.Keys(p.todo))
}

// receive takes in what has changed, unless the pass is halted, and returns the objects that need another look for that, sorted.
// While a tenant is read for the first time, or on demand, an object of which nothing was desired before is not among them: at a
// start, what is desired is found out little by little, and the list costs less than to read each object alone.
func (p *pass) receive() (changed []aai.Key) {
	if p.halt != nil {
		return nil
	}
	c := p.changes()
	if p.halt = p.check(c.Desired); p.halt != nil {
		return nil
	}
	for key, d := range c.Desired {
		if d.Held == p.guards.Keys[key] && reflect.DeepEqual(d.Document, p.desired[key]) {
			continue
		}
		if !p.listing || !p.resynced.IsZero() || p.desired[key] != nil {
			changed = append(changed, key)
		}
		if _, written := p.acked[key]; written {
			if lag, known := p.lag(key, p.standingOf(key)); known {
				p.lags = append(p.lags, lag)
			}
		}
		p.changed[key] = true
		delete(p.settled, key)
	}
	changed = append(changed, p.open(c)...)
	slices.SortFunc(changed, aai.Key.Compare)
	return changed
}

// check refuses documents that would be written to another place, or without our data-owner.
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

// ending reports whether no further request is to begin, so that those under way can end within the time to write: A&AI
// that answers is not down, there is only much to do.
func (p *pass) ending(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && len(p.acked)+len(p.settled) > 0 && time.Until(deadline) <= p.options.WriteTime/4 {
		p.unfinished = true
	}
	return p.unfinished
}

// due reports whether the tenant is to be read in full. It is after an outage, too: A&AI may have been restored from a backup.
func (p *pass) due() bool {
	return p.resynced.IsZero() || p.outages != p.options.Client.Outages() || !p.options.Clock().Before(p.options.nextRead(p.resynced, p.alone))
}

// refresh reads the tenant in full and gives a new chance to what was put off or given up.
func (p *pass) refresh(ctx context.Context) {
	p.list(ctx)
	if p.halt == nil {
		p.resynced = p.options.Clock() // What takes longer to read than Resync would else be read all the time.
		p.retryAll()
		clear(p.settled)
	}
}

// list reads the tenant in full.
func (p *pass) list(ctx context.Context) {
	outages := p.options.Client.Outages()
	var documents []aai.Document
	var err error
	clear(p.fresh)
	p.meanwhile(ctx, func() { documents, err = p.options.Client.ListK8sResources(ctx, p.tenant, p.options.Plan.Owner) })
	if err != nil {
		p.stop(err)
		return
	}
	before := p.known
	p.known = make(map[aai.Key]*aai.Document, len(documents))
	p.owned, p.exists = map[string]int{}, false
	p.listed, p.outages = true, outages
	for i := range documents {
		key := aai.Key{Tenant: p.tenant, ID: documents[i].ID}
		p.learn(key, &documents[i])
		p.look(key)
	}
	for key := range p.fresh { // Its page may be older.
		p.learn(key, before[key])
	}
	maps.DeleteFunc(p.uncertain, func(key aai.Key, _ bool) bool { // A list has no documents of others, to whom a place may belong where ours was refused.
		return !p.fresh[key] && (p.known[key] != nil || p.failed[key].times == 0)
	})
	for key := range before {
		if p.known[key] == nil {
			p.look(key)
		}
	}
	for key := range p.desired {
		p.look(key)
	}
}

// meanwhile reads the tenant in full by a function, and does what changes until that is over.
func (p *pass) meanwhile(ctx context.Context, read func()) {
	p.listing = true
	defer func() { p.listing = false }()
	over := make(chan struct{})
	go func() {
		defer close(over)
		read()
	}()
	for {
		select {
		case <-over:
			return
		case <-p.woken:
			for changed := p.receive(); len(changed) > 0; changed = p.receive() {
				p.work(ctx, p.steps(slices.Values(changed)))
			}
		}
	}
}

// look makes the pass look at an object.
func (p *pass) look(key aai.Key) { p.todo[key], p.changed[key] = true, true }

// step returns what to do about an object next, if anything. What needs nothing is no longer among the things to do.
func (p *pass) step(key aai.Key) (s step, ready bool) {
	if _, busy := p.busy[key]; busy { // It is looked at again when its request is over.
		return step{}, false
	}
	delete(p.conflicts, key)
	delete(p.skipped, key)
	t := p.failed[key]
	switch {
	case p.settled[key] && t.reason != ReasonMissingDependency: // The next pass tries it again.
		return step{}, false
	case p.settled[key], p.guards.Keys[key], p.rejected(key), t.reason == ReasonUnavailable && !t.due(p.options.Clock()):
		delete(p.todo, key)
		return step{}, false
	case p.waitsForList(key):
		return step{}, false
	case p.uncertain[key], p.listing && !p.fresh[key]:
		return step{read: true, op: plan.Operation{Key: key}}, true
	}
	d := p.options.Plan.Decide(key, p.desired[key], p.known[key], p.guards)
	if d.Deletes() {
		d = p.limitDeletion(key, d)
	}
	if d.Conflict != nil {
		p.conflicts[key] = *d.Conflict
	}
	if d.Skipped != nil {
		p.skipped[key] = *d.Skipped
	}
	ops := slices.DeleteFunc(d.Operations, p.waits)
	if len(ops) == 0 {
		delete(p.todo, key)
		return step{}, false
	}
	op := ops[0]
	if err := p.lacks(op); err != nil {
		p.fail(op, err, 1)
		delete(p.todo, key)
		return step{}, false
	}
	name := targets(op)
	if others, probed := p.waiting[name]; probed {
		p.waiting[name] = append(others, key)
		return step{}, false
	}
	return step{op: op, read: p.readFirst(op)}, true
}

// waitsForList reports whether nothing is done about an object before the tenant has been read. That is so for deletions, which
// are limited by what is there.
func (p *pass) waitsForList(key aai.Key) bool {
	return p.listing && (p.desired[key] == nil || !p.fresh[key] && len(p.fresh) >= maxMeanwhile)
}

// limitDeletion limits a deletion.
func (p *pass) limitDeletion(key aai.Key, d plan.Decision) plan.Decision {
	source := p.known[key].DataSource
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

// waits reports whether an operation waits for what it depends on.
func (p *pass) waits(op plan.Operation) bool {
	t := p.failed[op.Key]
	return needsOthers(op) && t.reason == ReasonMissingDependency && !t.due(p.options.Clock())
}

// needsOthers reports whether an operation depends on what others have to create.
func needsOthers(op plan.Operation) bool { return op.Verb == plan.Create || op.Verb == plan.Relate }

// readFirst reports whether a document must be read before an operation on it: A&AI takes an update and a deletion only with
// the version that they were computed from. It compares none when it changes a relationship, and the document may have
// another owner by now, so that must have been read in this pass.
func (p *pass) readFirst(op plan.Operation) bool {
	switch op.Verb {
	case plan.Relate, plan.Unrelate:
		return !p.listed && !p.fresh[op.Key]
	case plan.Update, plan.Delete:
		return op.ResourceVersion == ""
	case plan.Create:
	}
	return false
}

// listIsCheaper reports whether so many documents have to be read before they are written that reading the tenant in full costs less. A hundred documents of a list weigh about as much as one that is read alone.
func (p *pass) listIsCheaper(steps []step) bool {
	reads, probes := 0, map[string]bool{}
	for _, s := range steps {
		name := targets(s.op)
		if s.read && !probes[name] {
			reads++
		}
		probes[name] = p.absent[name] // Of all that need it, one is read at first.
	}
	return reads > 1 && reads*100 > len(p.known)
}

// tenantExists finds out whether the tenant exists, if that is not known and several objects are to be created there. It returns false if that cannot be found out.
func (p *pass) tenantExists(ctx context.Context, steps []step) bool {
	creates := func(s step) bool { return s.op.Verb == plan.Create }
	first := slices.IndexFunc(steps, creates)
	if p.exists || first < 0 || !slices.ContainsFunc(steps[first+1:], creates) { // A single creation finds it out itself.
		return true
	}
	if p.exists, p.halt = p.options.Client.HasTenant(ctx, p.tenant); !p.exists && p.halt == nil {
		p.lost = true
		p.missing[p.tenant.Path()] = &aai.Error{
			Op: aai.OpTenant, URI: p.tenant.Path(), Status: http.StatusNotFound, Code: aai.CodeNodeNotFound, Kind: aai.MissingDependency, Problem: aai.ProblemTenant,
			Message: fmt.Sprintf("tenant %q does not exist", p.tenant),
		}
	}
	return p.halt == nil
}
