package sync

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// round does one step for each object. Operations go together in bulk requests where there is more than one, and alone where there is not, or where others must not suffer from them.
func (p *pass) round(ctx context.Context, steps []step) {
	p.careful = false
	var group errgroup.Group
	group.SetLimit(p.options.Parallelism)
	refused := make(chan []plan.Operation, len(steps))
	for _, ops := range batches(steps) {
		group.Go(func() error {
			if !p.ending(ctx) && (p.isCareful() || !p.write(ctx, ops)) {
				refused <- ops
			}
			return nil
		})
	}
	for _, s := range steps { // After the writes, which are based on what was read before.
		if s.read {
			group.Go(func() error {
				if !p.ending(ctx) {
					p.read(ctx, s.op.Key)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // objects leave their errors in the pass
	close(refused)
	if p.trust == contradicted { // What was refused is planned again.
		return
	}
	for ops := range refused {
		p.bisect(ctx, ops)
	}
}

// batches puts operations together, as many as each allows.
func batches(steps []step) [][]plan.Operation {
	var all [][]plan.Operation
	var last []plan.Operation
	limit := 0
	for _, s := range steps {
		if s.read {
			continue
		}
		if len(last) == 0 || min(limit, s.together) <= len(last) {
			all, last, limit = append(all, nil), nil, s.together
		}
		last, limit = append(last, s.op), min(limit, s.together)
		all[len(all)-1] = last
	}
	return all
}

func (p *pass) isCareful() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.careful
}

// bisect does operations that were refused together in ever smaller parts, one after the other, until the one that is to blame is alone.
func (p *pass) bisect(ctx context.Context, ops []plan.Operation) {
	if p.ending(ctx) {
		return
	}
	if len(ops) < 2 {
		p.write(ctx, ops)
		return
	}
	for _, part := range [][]plan.Operation{ops[:len(ops)/2], ops[len(ops)/2:]} {
		if !p.write(ctx, part) {
			p.bisect(ctx, part)
		}
	}
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
	err := p.execute(ctx, ops)
	if err == nil {
		p.acknowledge(ops)
		return true
	}
	e, ok := errors.AsType[*aai.Error](err)
	refused := ok && (e.Kind == aai.DeadLetter || e.Kind == aai.Reread || e.Kind == aai.Park)
	if refused && len(ops) > 1 {
		p.beCareful(e.Code == aai.CodePayloadLimit, len(ops))
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

// beCareful makes the rest of the round go one after the other, so that what is found out about one request is known to the next. When A&AI said that there are too many operations, there will be fewer from now on.
func (p *pass) beCareful(tooMany bool, operations int) {
	if limit := p.bulk.Load(); tooMany && int(limit) >= operations {
		p.bulk.CompareAndSwap(limit, int32(max(operations/2, 1)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.careful = true
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
	if aai.KindOf(err) != aai.Reread || p.tried[op.Key] >= maxRereads {
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
