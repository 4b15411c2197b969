package sync

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// maxUrgent bounds how many objects go before the rest of a round. More of them are a round of their own.
func (p *pass) maxUrgent() int { return p.options.Parallelism * client.MaxBulk }

// round does one step for each object, a few requests at a time. What has changed meanwhile, and what A&AI has refused
// together, goes before the rest, and as far as it has to go.
func (p *pass) round(ctx context.Context, rest [][]step) {
	urgent, changed := map[aai.Key]bool{}, map[aai.Key]bool{}
	for lanes := p.options.Parallelism; p.halt == nil && !p.ending(ctx) && len(urgent) <= p.maxUrgent(); {
		part := requests(p.steps(urgent))
		part = part[:min(len(part), lanes)]
		if len(part) == 0 || !part[0][0].read { // A change waits for no writing of others while it is only read.
			n := min(lanes-len(part), len(rest))
			for _, request := range rest[:n] {
				part = append(part, slices.DeleteFunc(request, func(s step) bool { return changed[s.op.Key] }))
			}
			rest = rest[n:]
		}
		if len(part) == 0 {
			return
		}
		refused := p.do(ctx, part)
		if p.trust == contradicted { // What was refused is planned again.
			return
		}
		if len(rest) > 0 { // Else the next pass is soon enough.
			for _, key := range p.receive() {
				urgent[key], changed[key] = true, true
			}
		}
		lanes = p.options.Parallelism
		for _, key := range refused { // One after the other, so that what is found out about one is known to the next.
			urgent[key], lanes = true, 1
		}
		maps.DeleteFunc(urgent, func(key aai.Key, _ bool) bool { return !p.todo[key] || p.settled[key] })
	}
}

// requests puts steps together that allow the same number, so that one does not suffer from others. To read takes a request of its own, and comes first, so that what was
// read can be written together.
func requests(steps []step) [][]step {
	var reads, writes [][]step
	together := 0
	for _, s := range steps {
		last := len(writes) - 1
		switch {
		case s.read:
			reads = append(reads, []step{s})
		case s.together == together && len(writes[last]) < together:
			writes[last] = append(writes[last], s)
		default:
			writes, together = append(writes, []step{s}), s.together
		}
	}
	return append(reads, writes...)
}

// do does requests at the same time, and returns the objects for which A&AI has refused one together with others.
func (p *pass) do(ctx context.Context, part [][]step) (refused []aai.Key) {
	var group errgroup.Group
	group.SetLimit(p.options.Parallelism)
	refusals := make(chan []plan.Operation, len(part))
	for _, request := range part {
		group.Go(func() error {
			if len(request) == 0 {
				return nil
			}
			if request[0].read {
				p.read(ctx, request[0].op.Key)
				return nil
			}
			ops := make([]plan.Operation, 0, len(request))
			for _, s := range request {
				ops = append(ops, s.op)
			}
			if !p.write(ctx, ops) {
				refusals <- ops
			}
			return nil
		})
	}
	_ = group.Wait() // objects leave their errors in the pass
	close(refusals)
	for ops := range refusals {
		for _, op := range ops {
			p.refused[op.Key] = len(ops)
			refused = append(refused, op.Key)
		}
	}
	return refused
}

// read reads an object.
func (p *pass) read(ctx context.Context, key aai.Key) {
	if p.halted() {
		return
	}
	d, found, err := p.options.Client.GetK8sResource(ctx, key)
	if err != nil {
		p.fail(plan.Operation{Key: key}, err, 1)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uncertain, key)
	p.fresh[key] = true
	p.learn(key, nil)
	if found {
		p.learn(key, &d)
	}
}

func (p *pass) halted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.halt != nil
}

// write does operations in one request, except those for which something is known to be missing. It returns false when they were refused together, so that nothing was done and it is not known which is to blame.
func (p *pass) write(ctx context.Context, ops []plan.Operation) bool {
	if ops = p.possible(ops); len(ops) == 0 {
		return true
	}
	if !p.options.Leads() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.halt = notLeading(aai.OpBulk, p.tenant.Path())
		return true
	}
	err := p.execute(ctx, ops)
	if err == nil {
		p.acknowledge(ops)
		return true
	}
	e, ok := errors.AsType[*aai.Error](err)
	refused := ok && (e.Kind == aai.DeadLetter || e.Kind == aai.Reread || e.Kind == aai.Park)
	if refused && len(ops) > 1 {
		if limit := p.bulk.Load(); e.Code == aai.CodePayloadLimit && int(limit) >= len(ops) { // There will be fewer from now on.
			p.bulk.CompareAndSwap(limit, int32(max(len(ops)/2, 1)))
		}
		p.contradict(e, ops)
		return false
	}
	for _, op := range ops {
		if !p.again(op, err) {
			p.fail(op, err, len(ops))
		}
	}
	return true
}

// contradict notes that the list was wrong, when A&AI refuses together so many operations for a precondition that reading
// the tenant again costs less than to find out which of the objects are other than they were. The precondition is always
// that of a version: of a creation, that there is none; for several together, A&AI's code does not say so.
func (p *pass) contradict(e *aai.Error, ops []plan.Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trust == trusted && e.Status == http.StatusPreconditionFailed && len(ops)*100 > len(p.known) {
		p.trust = contradicted
	}
}

// acknowledge notes that operations were done.
func (p *pass) acknowledge(ops []plan.Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock()
	for _, op := range ops {
		p.apply(op)
		p.fresh[op.Key] = true
		delete(p.failing, op.Key)
		delete(p.absent, targets(op))
		if op.Verb == plan.Create || op.Verb == plan.Relate {
			delete(p.parked, op.Key)
		}
		p.acked[op.Key] = now
	}
}

// again reports whether an object is to be read and tried again in this pass, because others were faster.
func (p *pass) again(op plan.Operation, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if aai.KindOf(err) != aai.Reread || p.tried[op.Key] >= maxRereads || p.failing[op.Key].times > 0 {
		return false
	}
	p.tried[op.Key]++
	p.uncertain[op.Key] = true
	return true
}

// possible returns the operations for which nothing is known to be missing; the others fail as those did that found it out. It returns none when the pass is halted.
func (p *pass) possible(ops []plan.Operation) []plan.Operation {
	var rest []plan.Operation
	for _, op := range ops {
		switch err := p.lacks(op); {
		case p.halted():
			return nil
		case err != nil:
			p.fail(op, err, 1)
		default:
			rest = append(rest, op)
		}
	}
	return rest
}

// lacks returns the error with which something that an operation needs was missing already in this pass.
func (p *pass) lacks(op plan.Operation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.missing[p.tenant.Path()]; err != nil && op.Verb == plan.Create {
		return err
	}
	return p.missing[targets(op)]
}
