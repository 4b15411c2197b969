package sync

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// maxRereads bounds how often a pass starts again with an object because others keep changing it.
const maxRereads = 2

// pass is one pass over a tenant. It goes in rounds: plan, for each object that
// may need something, its first operation, do all of these, and plan again with
// what was learnt. So an object that turns out to be other than what was known
// needs no treatment of its own: it is read, and the next plan is right. What
// changes during a round does not wait for its end.
type pass struct {
	options Options
	bulk    *atomic.Int32
	probing *probing
	alone   time.Time
	tenant  aai.Tenant
	// changes returns what has changed of what is desired and held since it was called last.
	changes func() Change

	mu sync.Mutex // guards the rest while requests are under way
	*memory
	// settled are the objects that this pass has given up.
	settled map[aai.Key]bool
	// missing are, by name, what objects depend on and A&AI does not have.
	missing map[string]error
	// tried counts how often an object was started again.
	tried map[aai.Key]int
	// fresh are the objects that this pass has read, or written in a version that it knew; all of them when listed is set.
	fresh  map[aai.Key]bool
	listed bool
	// acked is when A&AI acknowledged the last write to an object.
	acked map[aai.Key]time.Time
	// changed are the objects whose standing may be another now.
	changed map[aai.Key]bool
	// lags are those of objects that have changed again since they were written.
	lags []time.Duration
	// refused are how many operations a request may have with one that was refused together with others.
	refused map[aai.Key]int
	// trust is how far the last list is to be trusted.
	trust trust
	// unfinished is true when the time to write was over before all was written.
	unfinished bool
	// halt is why the pass cannot go on.
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

// step is what to do about an object next.
type step struct {
	// read is true when the document has to be read first.
	read bool
	op   plan.Operation
	// together is how many operations a request with this one may have.
	together int
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
	p.revive(p.options.Clock(), p.options.DeletionPause)
	for p.rounds(ctx, !listed) {
		listed = true
		p.list(ctx)
		p.receive()
	}
}

// receive takes in what has changed, unless the pass is halted, and returns which objects have.
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
		changed = append(changed, key)
		if _, written := p.acked[key]; written {
			if lag, known := p.lag(key, p.standingOf(key)); known {
				p.lags = append(p.lags, lag)
			}
		}
		p.changed[key] = true
		delete(p.settled, key)
		delete(p.refused, key)
	}
	p.open(c)
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

// rounds does what is to be done, until nothing is or it has taken too long. It returns true as soon as it is cheaper to read the tenant in full, if that may be done, and when it has to be read again because the list was contradicted.
func (p *pass) rounds(ctx context.Context, mayList bool) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.WriteTime, fmt.Errorf("to write took longer than %s", p.options.WriteTime))
	defer cancel()
	for key := range p.todo {
		p.changed[key] = true
	}
	for p.halt == nil {
		steps := p.steps(p.todo) // Also at the end: what was read last may be a conflict, or need nothing.
		if p.ending(ctx) {
			return false
		}
		if mayList && p.listIsCheaper(steps) {
			return true
		}
		if len(steps) == 0 || !p.tenantExists(ctx, steps) {
			return false
		}
		p.round(ctx, requests(steps))
		if p.trust == contradicted && p.halt == nil {
			p.trust = readAgain
			return true
		}
	}
	return false
}

// ending reports whether no further request is to begin, so that those under way can end within the time to write: A&AI
// that answers is not down, there is only much to do.
func (p *pass) ending(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	}
}

// list reads the tenant in full.
func (p *pass) list(ctx context.Context) {
	outages := p.options.Client.Outages()
	documents, err := p.options.Client.ListK8sResources(ctx, p.tenant, p.options.Plan.Owner)
	if err != nil {
		p.halt = err
		return
	}
	before := p.known
	p.known = make(map[aai.Key]*aai.Document, len(documents))
	p.owned, p.uncertain, p.exists = map[string]int{}, map[aai.Key]bool{}, false
	p.listed, p.outages = true, outages
	for i := range documents {
		key := aai.Key{Tenant: p.tenant, ID: documents[i].ID}
		p.learn(key, &documents[i])
		p.look(key)
	}
	for key := range before {
		if p.known[key] == nil {
			p.look(key)
		}
	}
	for key := range p.desired {
		p.look(key)
	}
}

// look makes the pass look at an object.
func (p *pass) look(key aai.Key) { p.todo[key], p.changed[key] = true, true }

// steps returns what to do next about objects, sorted by object; what failed last time or was refused comes last, so that it cannot keep others from their turn. What needs nothing is no longer among the things to do.
func (p *pass) steps(of map[aai.Key]bool) []step {
	var steps []step
	probed := map[string]bool{}
	for key := range of {
		switch s, state := p.step(key); state {
		case nothing:
			delete(p.todo, key)
		case ready:
			steps = append(steps, s)
		case waits:
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(
			cmp.Compare(p.failing[a.op.Key].together, p.failing[b.op.Key].together), cmp.Compare(p.refused[a.op.Key], p.refused[b.op.Key]),
			cmp.Compare(b.together, a.together), a.op.Key.Compare(b.op.Key),
		)
	})
	return slices.DeleteFunc(steps, func(s step) bool { return p.probes(probed, s) })
}

// probes reports whether an operation waits for another that finds out whether what both need is there now.
func (p *pass) probes(probed map[string]bool, s step) bool {
	name := targets(s.op)
	if !p.absent[name] || p.missing[name] != nil { // What is missing is known to all of them.
		return false
	}
	first := !probed[name]
	probed[name] = true
	return !first
}

// progress says how far an object is.
type progress int

const (
	// nothing means that it needs nothing now.
	nothing progress = iota
	// ready means that there is a step.
	ready
	// waits means that it needs something that cannot be done in this pass.
	waits
)

// step returns what to do about an object next.
func (p *pass) step(key aai.Key) (step, progress) {
	delete(p.conflicts, key)
	delete(p.skipped, key)
	switch {
	case p.guards.Keys[key], p.given(key):
		return step{}, nothing
	case p.settled[key]:
		if _, parked := p.parked[key]; parked {
			return step{}, nothing
		}
		return step{}, waits
	case p.options.Clock().Before(p.failing[key].until):
		return step{}, nothing
	case p.uncertain[key]:
		return step{read: true, op: plan.Operation{Key: key}}, ready
	}
	d := p.options.Plan.Decide(key, p.desired[key], p.known[key], p.guards)
	if d.Deletes() {
		d = p.limit(key, d)
	}
	if d.Conflict != nil {
		p.conflicts[key] = *d.Conflict
	}
	if d.Skipped != nil {
		p.skipped[key] = *d.Skipped
	}
	ops := slices.DeleteFunc(d.Operations, p.waits)
	if len(ops) == 0 {
		return step{}, nothing
	}
	s := step{op: ops[0], read: p.readFirst(ops[0]), together: int(p.bulk.Load())}
	for _, n := range []int{p.failing[key].together, p.refused[key]} {
		if n > 0 {
			s.together = min(s.together, max(n/2, 1))
		}
	}
	if p.absent[targets(s.op)] {
		s.together = 1
	}
	return s, ready
}

// limit limits a deletion.
func (p *pass) limit(key aai.Key, d plan.Decision) plan.Decision {
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

// waits reports whether an operation must not be tried now.
func (p *pass) waits(op plan.Operation) bool {
	return (op.Verb == plan.Create || op.Verb == plan.Relate) && p.options.Clock().Before(p.parked[op.Key].until)
}

// readFirst reports whether a document must be read before an operation on it: A&AI takes an update and a deletion only with
// the version that they were computed from. It compares none when it changes a relationship, and the document may have
// another owner by now, so that must have been read in this pass.
func (p *pass) readFirst(op plan.Operation) bool {
	switch op.Verb {
	case plan.Relate, plan.Unrelate:
		return !p.listed && !p.fresh[op.Key] && p.missing[targets(op)] == nil
	case plan.Update, plan.Delete:
		return op.ResourceVersion == ""
	case plan.Create:
	}
	return false
}

// listIsCheaper reports whether so many documents have to be read before they are written that reading the tenant in full costs less. A page of a list weighs about as much as a hundred documents read one by one.
func (p *pass) listIsCheaper(steps []step) bool {
	var reads int
	for _, s := range steps {
		if s.read {
			reads++
		}
	}
	return reads > 1 && reads*100 > len(p.known)
}

// tenantExists finds out whether the tenant exists, if that is not known and several objects are to be created there. If it does not, what is to be created is parked; if that cannot be found out, the pass halts.
func (p *pass) tenantExists(ctx context.Context, steps []step) bool {
	creates := func(s step) bool { return s.op.Verb == plan.Create }
	first := slices.IndexFunc(steps, creates)
	if p.exists || first < 0 || !slices.ContainsFunc(steps[first+1:], creates) { // A single creation finds it out itself.
		return true
	}
	exists, err := p.options.Client.HasTenant(ctx, p.tenant)
	switch {
	case err != nil:
		p.halt = err
		return false
	case exists:
		p.exists = true
		return true
	}
	p.lost = true
	missing := &aai.Error{
		Op: aai.OpTenant, URI: p.tenant.Path(), Status: http.StatusNotFound, Code: aai.CodeNodeNotFound, Kind: aai.Park, Problem: aai.ProblemTenant,
		Message: fmt.Sprintf("tenant %q does not exist", p.tenant),
	}
	for _, s := range steps {
		if creates(s) {
			p.fail(s.op, missing, 1)
		}
	}
	return true
}
