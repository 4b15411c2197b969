package sync

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// queue holds objects that may need a request. The worker that takes an object decides whether it does.
type queue struct {
	keys []aai.Key
	// awaitsResults is true when writes wait for the requests in awaited: for reads, so that the documents are written together, and for
	// single writes of objects that A&AI has rejected in a bulk request, so that the result for one object is known before the next.
	awaitsResults bool
	// awaited is the number of such requests in flight.
	awaited int
}

// step is the next operation or read of an object.
type step struct {
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
		p.planned.keys = append(p.planned.keys, s.op.Key)
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
func (p *pass) nextSteps(keys iter.Seq[aai.Key]) []step {
	if p.haltErr != nil {
		return nil
	}
	var steps []step
	for key := range keys {
		p.toReport[key] = true
		if s, ready := p.nextStep(key); ready {
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
		return cmp.Or(cmp.Compare(reads(a), reads(b)), cmp.Compare(p.batchLimit(b.op.Key), p.batchLimit(a.op.Key)), a.op.Key.Compare(b.op.Key))
	})
	return steps
}

// next returns the next request; nil when there will be none. Objects that have changed since the work began come first.
func (p *pass) next(ctx context.Context) *request {
	for p.haltErr == nil && !p.stale && !p.writeTimeOver(ctx) {
		if p.slow || len(p.planned.keys) > 0 { // Else the next pass is soon enough.
			p.urgent.keys = append(p.urgent.keys, p.receive()...)
		}
		for _, q := range []*queue{&p.urgent, &p.planned} {
			if r := p.take(q); r != nil {
				p.begin(r)
				return r
			}
		}
		if len(p.inFlight) == 0 {
			return nil
		}
		p.idle.Wait()
	}
	return nil
}

// take removes the next request from a queue; nil when there is none, or none is ready.
func (p *pass) take(q *queue) *request {
	for len(q.keys) > 0 {
		s, ready := p.nextStep(q.keys[0])
		switch {
		case ready && !s.read && q.awaitsResults && q.awaited > 0:
			return nil
		case ready && !s.read:
			return p.takeBatch(q)
		}
		q.keys = q.keys[1:]
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
	var rest []aai.Key
	batchSize := 0
	for i, key := range q.keys {
		s, ready := p.nextStep(key)
		if !ready {
			continue
		}
		if s.read {
			rest = append(rest, key)
			continue
		}
		limit := p.batchLimit(key)
		if p.missingTargets[targets(s.op)] {
			limit = 1
		}
		if batchSize == 0 {
			batchSize, r.awaited = limit, p.batchLimits[key] > 0
		}
		if limit != batchSize || len(r.ops) == batchSize {
			rest = append(rest, q.keys[i:]...)
			break
		}
		r.ops = append(r.ops, s.op)
	}
	q.keys = rest
	return r
}

// batchLimit returns the maximum number of operations in a request with an object: lower when one with it has failed.
func (p *pass) batchLimit(key aai.Key) int {
	maxOps := int(p.maxBulk.Load())
	if n := p.batchLimits[key]; n > 0 {
		return min(n, maxOps)
	}
	return maxOps
}

// begin records that a request is in flight.
func (p *pass) begin(r *request) {
	if r.awaited {
		r.queue.awaited++
	}
	if name := targets(r.ops[0]); p.missingTargets[name] {
		r.probes, p.waiting[name] = name, []aai.Key{}
	}
	for _, op := range r.ops {
		p.inFlight[op.Key] = p.desired[op.Key]
	}
}

// done queues the objects of a finished request again, and those that waited for its result, because their next step may have changed. Objects
// that have changed meanwhile are urgent. Of the others, those that A&AI has rejected together come first, and so does an object that was read on
// behalf of others, before another one is read.
func (p *pass) done(r *request) {
	if r.awaited {
		r.queue.awaited--
	}
	var first []aai.Key
	for _, op := range r.ops {
		changed := p.inFlight[op.Key] != p.desired[op.Key]
		delete(p.inFlight, op.Key)
		switch {
		case changed:
			p.urgent.keys = append(p.urgent.keys, op.Key)
		case p.batchLimits[op.Key] > 0 && !r.read, r.probes != "" && r.read:
			first = append(first, op.Key)
		default:
			r.keys = append(r.keys, op.Key)
		}
	}
	r.keys = slices.Concat(first, r.keys, p.waiting[r.probes])
	delete(p.waiting, r.probes)
	p.idle.Broadcast()
}
