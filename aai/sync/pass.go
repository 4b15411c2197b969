package sync

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// pass is one pass over a tenant. Each object is worked on by itself, step by
// step: plan, do the first operation, and plan again with what was learnt. So
// an object that turns out to be other than what was known needs no treatment
// of its own: it is read, and the next plan is right.
type pass struct {
	options Options
	tenant  aai.Tenant
	desired map[aai.Key]aai.Document
	holds   plan.Holds

	mu sync.Mutex // guards the rest while objects are worked on
	*memory
	// settled are the objects that this pass has given up.
	settled map[aai.Key]bool
	// missing are, by name, what objects depend on and A&AI does not have.
	missing map[string]error
	// acked is when A&AI acknowledged the last write to an object.
	acked map[aai.Key]time.Time
	// halt is why the pass cannot go on.
	halt error
}

// run does the pass.
func (p *pass) run(ctx context.Context) {
	due := p.due()
	if due {
		p.refresh(ctx)
	}
	keys := p.unfinished()
	if p.halt == nil && !due && p.listIsCheaper(keys) {
		p.list(ctx)
		keys = p.unfinished()
	}
	if p.halt != nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(p.options.Parallelism)
	for _, key := range keys {
		group.Go(func() error {
			p.finish(ctx, key)
			return nil
		})
	}
	_ = group.Wait() // objects leave their errors in the pass
}

// due says whether the tenant is to be read in full.
func (p *pass) due() bool {
	return p.resynced.IsZero() || p.forgotten.Load() || p.options.Clock().Sub(p.resynced) >= p.options.Resync
}

// refresh reads the tenant in full and gives a new chance to what was put off or given up.
func (p *pass) refresh(ctx context.Context) {
	forgotten := p.forgotten.Swap(false)
	p.list(ctx)
	if p.halt == nil {
		p.resynced = p.listed
		p.retryAll()
	} else if forgotten {
		p.forgotten.Store(true)
	}
}

// list reads the tenant in full.
func (p *pass) list(ctx context.Context) {
	start := p.options.Clock()
	documents, err := p.options.Client.ListK8sResources(ctx, p.tenant, p.options.Plan.Owner)
	if err != nil {
		p.halt = err
		return
	}
	known := make(map[aai.Key]aai.Document, len(documents))
	for _, d := range documents {
		known[aai.Key{Tenant: p.tenant, ID: d.ID}] = d
	}
	p.learn(known)
	p.listed = start
}

// unfinished returns the objects that need something, sorted; those that failed last time come last, so that they cannot keep others from their turn.
func (p *pass) unfinished() []aai.Key {
	need := map[aai.Key]bool{}
	for _, op := range p.diff(p.desired, p.known) {
		need[op.Key] = true
	}
	for key := range p.uncertain {
		if !p.given(key, p.want(key)) {
			need[key] = true
		}
	}
	keys := make([]aai.Key, 0, len(need))
	for key := range need {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b aai.Key) int {
		return cmp.Or(cmp.Compare(p.failed(a), p.failed(b)), a.Compare(b))
	})
	return keys
}

// failed is 1 for an object that failed last time, else 0.
func (p *pass) failed(key aai.Key) int {
	if p.failing[key] != nil {
		return 1
	}
	return 0
}

// diff returns the operations between two sets of documents that may be tried now.
func (p *pass) diff(desired, current map[aai.Key]aai.Document) []plan.Operation {
	ops := plan.Diff(desired, current, p.holds, p.options.Plan).Operations
	return slices.DeleteFunc(ops, p.waits)
}

// waits says whether an operation must not be tried now.
func (p *pass) waits(op plan.Operation) bool {
	parked := p.parked[op.Key]
	waitsFor := op.Verb == plan.Create || op.Verb == plan.Relate
	return waitsFor && p.options.Clock().Before(parked.until) || p.given(op.Key, p.want(op.Key))
}

// want returns the desired document of an object; nil when there is none.
func (p *pass) want(key aai.Key) *aai.Document {
	if d, ok := p.desired[key]; ok {
		return &d
	}
	return nil
}

// listIsCheaper says whether so many documents have to be read before they are written that reading the tenant in full costs less. A page of a list weighs about as much as a hundred documents read one by one.
func (p *pass) listIsCheaper(keys []aai.Key) bool {
	var reads int
	for _, key := range keys {
		if op, ok := p.next(key); ok && p.readFirst(op) {
			reads++
		}
	}
	return reads > 1 && reads*100 > len(p.known)
}

// next returns the operation that an object needs first.
func (p *pass) next(key aai.Key) (plan.Operation, bool) {
	desired, current := map[aai.Key]aai.Document{}, map[aai.Key]aai.Document{}
	if d, ok := p.desired[key]; ok {
		desired[key] = d
	}
	if d, ok := p.known[key]; ok {
		current[key] = d
	}
	ops := p.diff(desired, current)
	if len(ops) == 0 {
		return plan.Operation{}, false
	}
	return ops[0], true
}

// readFirst says whether a document must be read before an operation on it: its labels before they are replaced, unless they are known well enough, and its resource-version before it is deleted.
func (p *pass) readFirst(op plan.Operation) bool {
	switch op.Verb {
	case plan.Update:
		return op.Patch.Labels != nil && p.age(op.Key, p.options.Clock()) > p.options.MaxAge
	case plan.Delete:
		return op.ResourceVersion == ""
	case plan.Create, plan.Relate, plan.Unrelate:
	}
	return false
}
