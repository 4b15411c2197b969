package sync

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// do does a request. Other workers go ahead while it is under way.
func (p *pass) do(ctx context.Context, r *request) {
	if r.read {
		p.read(ctx, r.ops[0].Key)
	} else {
		p.write(ctx, r.ops)
	}
}

// outside does what takes long while others hold the lock.
func (p *pass) outside(do func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	do()
}

// read reads an object.
func (p *pass) read(ctx context.Context, key aai.Key) {
	var d aai.Document
	var found bool
	var err error
	p.outside(func() { d, found, err = p.options.Client.GetK8sResource(ctx, key) })
	if err != nil {
		p.fail(plan.Operation{Key: key}, err, 1)
		return
	}
	delete(p.uncertain, key)
	p.fresh[key] = true
	p.learn(key, nil)
	if found {
		p.learn(key, &d)
	}
}

// write does operations in one request.
func (p *pass) write(ctx context.Context, ops []plan.Operation) {
	var err error
	p.outside(func() { err = p.execute(ctx, ops) })
	if err == nil {
		p.acknowledge(ops)
		return
	}
	e, ok := errors.AsType[*aai.Error](err)
	refused := ok && (e.Kind == aai.Rejected || e.Kind == aai.Conflict || e.Kind == aai.MissingDependency)
	if refused && len(ops) > 1 { // Nothing was done, and it is not known which is to blame.
		if most := p.bulk.Load(); e.Code == aai.CodePayloadLimit && int(most) >= len(ops) { // There will be fewer from now on.
			p.bulk.CompareAndSwap(most, int32(max(len(ops)/2, 1)))
		}
		p.contradict(e, ops)
		for _, op := range ops {
			p.limits[op.Key] = len(ops) / 2
		}
		return
	}
	for _, op := range ops {
		if !p.again(op, err) {
			p.fail(op, err, len(ops))
		}
	}
}

// contradict notes that the list was wrong, when A&AI refuses together operations for a precondition, which is always that of
// a version: of a creation, that there is none; for several together, A&AI's code does not say so. Refused creations exist,
// and where one was not in the list many may be missing. Of others there must be so many that reading the tenant again costs
// less than to find out which of the objects are other than they were.
func (p *pass) contradict(e *aai.Error, ops []plan.Operation) {
	if p.trust != trusted || p.listing || e.Status != http.StatusPreconditionFailed {
		return
	}
	others := slices.ContainsFunc(ops, func(op plan.Operation) bool { return op.Verb != plan.Create })
	if !others || len(ops)*100 > len(p.known) {
		p.trust = contradicted
	}
}

// acknowledge notes that operations were done.
func (p *pass) acknowledge(ops []plan.Operation) {
	now := p.options.Clock()
	for _, op := range ops {
		p.apply(op)
		p.fresh[op.Key], p.acked[op.Key] = true, now
		delete(p.limits, op.Key)
		delete(p.absent, targets(op))
		if t := p.failed[op.Key]; t.reason != ReasonMissingDependency || needsOthers(op) {
			delete(p.failed, op.Key)
		}
	}
}

// again reports whether an object is to be read and tried again in this pass, because others were faster.
func (p *pass) again(op plan.Operation, err error) bool {
	if aai.KindOf(err) != aai.Conflict || p.tried[op.Key] >= maxConflicts || p.failed[op.Key].times > 0 {
		return false
	}
	p.tried[op.Key]++
	p.uncertain[op.Key] = true
	return true
}

// lacks returns the error with which something that an operation needs was missing already in this pass.
func (p *pass) lacks(op plan.Operation) error {
	if err := p.missing[p.tenant.Path()]; err != nil && op.Verb == plan.Create {
		return err
	}
	return p.missing[targets(op)]
}
