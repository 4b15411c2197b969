package sync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/healthscope/healthscope/aai/plan"
)

// queue holds objects that may need a request. The worker that takes an object decides whether it does.
type queue struct {
	visits []*visit
	// awaitsResults is true when writes wait for the requests in awaited: for reads, so that the documents are written together, and for
	// single writes of objects that A&AI has rejected in a bulk request, so that the result for one object is known before the next.
	awaitsResults bool
	// awaited is the number of such requests in flight.
	awaited int
}

// step is the next operation or read of an object.
type step struct {
	*visit

	// read is true when the document must be read first.
	read bool
	op   plan.Operation
}

// request is the next request of a worker, for objects of a queue.
type request struct {
	*queue

	// read is true when the request reads the document of its only operation.
	read    bool
	ops     []plan.Operation
	awaited bool
	// probes names the targets of which the request finds out for other objects whether they exist; empty for none.
	probes string
}

// work carries out steps, with up to Parallelism requests at a time, until there are none or the pass must end.
func (p *pass) work(ctx context.Context, steps []step) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.WriteTime, fmt.Errorf("to write took longer than %s", p.options.WriteTime))
	defer cancel()
	if p.haltErr != nil || p.writeTimeOver(ctx) || !p.checkTenant(ctx, steps) {
		return
	}
	p.urgent, p.planned = queue{}, queue{awaitsResults: true}
	for _, s := range steps {
		p.planned.visits = append(p.planned.visits, s.visit)
	}
	var workers, background sync.WaitGroup
	background.Go(func() { p.wakeIdle(ctx) })
	for range Parallelism {
		workers.Go(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			for r := p.next(ctx); r != nil; r = p.next(ctx) {
				if r.read {
					p.read(ctx, r.ops[0].Key)
				} else {
					p.write(ctx, r.ops)
				}
				p.done(r)
			}
			p.idle.Broadcast() // The others end, too.
		})
	}
	workers.Wait()
	cancel()
	background.Wait()
}

// slowAfter is how long work takes before it receives changes as they come. Until then they wait for the next pass, so that a burst of changes
// needs few requests.
const slowAfter = time.Second

// wakeIdle makes idle workers receive changes as they come when the work takes long, because a response may be late or lost.
func (p *pass) wakeIdle(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(slowAfter):
	}
	for {
		p.mu.Lock()
		p.slow = true
		p.idle.Broadcast()
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
	}
}

// nextSteps returns the next steps for objects that may need one: reads first, and retries last, so that they cannot delay others.
func (p *pass) nextSteps(visits []*visit) []step {
	if p.haltErr != nil {
		return nil
	}
	var steps []step
	for _, v := range visits {
		if s, ready := p.nextStep(v); ready {
			steps = append(steps, s)
		}
	}
	reads := func(s step) int {
		if s.read {
			return 0
		}
		return 1
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(reads(a), reads(b)), cmp.Compare(p.maxOps(b.visit), p.maxOps(a.visit)), a.key.Compare(b.key))
	})
	return steps
}

// next returns the next request; nil when there will be none. Objects that have changed since the work began come first.
func (p *pass) next(ctx context.Context) *request {
	for p.haltErr == nil && !p.stale && !p.writeTimeOver(ctx) {
		if p.slow || len(p.planned.visits) > 0 { // Else the next pass is soon enough.
			p.urgent.visits = append(p.urgent.visits, p.receive()...)
		}
		for _, q := range []*queue{&p.urgent, &p.planned} {
			if r := p.take(q); r != nil {
				p.begin(r)
				return r
			}
		}
		if p.inFlight == 0 {
			return nil
		}
		p.idle.Wait()
	}
	return nil
}

// take removes the next request from a queue; nil when there is none, or none is ready.
func (p *pass) take(q *queue) *request {
	for len(q.visits) > 0 {
		s, ready := p.nextStep(q.visits[0])
		switch {
		case ready && !s.read && q.awaitsResults && q.awaited > 0:
			return nil
		case ready && !s.read:
			return p.takeBatch(q)
		}
		q.visits = q.visits[1:]
		if ready {
			return &request{queue: q, read: true, ops: []plan.Operation{s.op}, awaited: true}
		}
	}
	return nil
}

// takeBatch removes as many writes from a queue as fit into a request. All of them have the same batch limit, so that failures of some objects do
// not affect others.
func (p *pass) takeBatch(q *queue) *request {
	r := &request{queue: q}
	var rest []*visit
	batchSize := 0
	for i, v := range q.visits {
		s, ready := p.nextStep(v)
		if !ready {
			continue
		}
		if s.read {
			rest = append(rest, v)
			continue
		}
		limit := p.maxOps(v)
		if p.missingTargets[targets(s.op)] {
			limit = 1
		}
		if batchSize == 0 {
			batchSize, r.awaited = limit, v.batchLimit > 0
		}
		if limit != batchSize || len(r.ops) == batchSize {
			rest = append(rest, q.visits[i:]...)
			break
		}
		r.ops, v.inFlight = append(r.ops, s.op), true // It may be in the queue twice.
	}
	q.visits = rest
	return r
}

// maxOps returns the maximum number of operations in a request with an object: fewer when one with it has failed.
func (p *pass) maxOps(v *visit) int {
	n := int(p.maxBulk.Load())
	if v.batchLimit > 0 {
		return min(n, v.batchLimit)
	}
	return n
}

// begin records that a request is in flight.
func (p *pass) begin(r *request) {
	p.inFlight++
	if r.awaited {
		r.queue.awaited++
	}
	if name := targets(r.ops[0]); p.missingTargets[name] {
		r.probes, p.awaitingProbe[name] = name, []*visit{}
	}
	for _, op := range r.ops {
		v := p.visit(op.Key)
		v.inFlight, v.sent = true, v.desired
	}
}

// done queues the objects of a finished request again, and those that waited for its result, because their next step may have changed. Objects
// that have changed meanwhile are urgent. Of the others, those that A&AI has rejected together come first, and so does an object that was read on
// behalf of others, before another one is read.
func (p *pass) done(r *request) {
	p.inFlight--
	if r.awaited {
		r.queue.awaited--
	}
	var first []*visit
	for _, op := range r.ops {
		v := p.visit(op.Key)
		changed := v.changedInFlight()
		v.inFlight = false
		switch {
		case changed:
			p.urgent.visits = append(p.urgent.visits, v)
		case v.batchLimit > 0 && !r.read, r.probes != "" && r.read:
			first = append(first, v)
		default:
			r.visits = append(r.visits, v)
		}
	}
	r.visits = slices.Concat(first, r.visits, p.awaitingProbe[r.probes])
	delete(p.awaitingProbe, r.probes)
	p.idle.Broadcast()
}
