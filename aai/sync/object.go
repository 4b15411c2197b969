package sync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

const (
	// maxSteps bounds the requests that one object gets in a pass. The longest good way is some ten: read, update, change two relationships, update, and twice read again.
	maxSteps = 20
	// maxRereads bounds how often a pass starts anew with an object because others keep changing it.
	maxRereads = 2
)

// finish does what an object needs, as far as it can be done now.
func (p *pass) finish(ctx context.Context, key aai.Key) {
	rereads := 0
	for range maxSteps {
		op, read, ok := p.step(key)
		switch {
		case !ok:
			return
		case read:
			p.read(ctx, key)
			continue
		}
		err := p.write(ctx, op)
		if err == nil {
			continue
		}
		if aai.KindOf(err) == aai.Reread && rereads < maxRereads {
			rereads++
			p.doubt(key)
			continue
		}
		p.fail(op, err)
		return
	}
	p.fail(plan.Operation{Key: key}, &aai.Error{Op: aai.OpGet, URI: key.Path(), Kind: aai.Retry, Message: fmt.Sprintf("not as desired after %d requests", maxSteps)})
}

// step returns what to do about an object next: read it, or do an operation. It is not ok when nothing is left to do.
func (p *pass) step(key aai.Key) (op plan.Operation, read, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halt != nil || p.settled[key] || p.given(key, p.want(key)) {
		return op, false, false
	}
	if p.uncertain[key] {
		return op, true, true
	}
	op, ok = p.next(key)
	return op, ok && p.readFirst(op), ok
}

// doubt notes that what is known about an object is wrong.
func (p *pass) doubt(key aai.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uncertain[key] = true
}

// read reads an object.
func (p *pass) read(ctx context.Context, key aai.Key) {
	d, found, err := p.options.Client.GetK8sResource(ctx, key)
	if err != nil {
		p.fail(plan.Operation{Key: key}, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uncertain, key)
	delete(p.failing, key)
	p.seen[key] = p.options.Clock()
	if found {
		p.known[key] = d
	} else {
		delete(p.known, key)
	}
}

// write does an operation, unless it is known that something is missing for it.
func (p *pass) write(ctx context.Context, op plan.Operation) error {
	if err := p.lacks(op); err != nil {
		return err
	}
	if err := execute(ctx, p.options.Client, op); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock()
	p.apply(op, now)
	delete(p.failing, op.Key)
	p.acked[op.Key] = now
	return nil
}

// lacks returns the error with which something that an operation needs was missing already in this pass.
func (p *pass) lacks(op plan.Operation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range dependencies(op) {
		if err := p.missing[name]; err != nil {
			return err
		}
	}
	return nil
}

// fail notes that an object cannot be finished in this pass, and why.
func (p *pass) fail(op plan.Operation, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled[op.Key] = true
	delete(p.failing, op.Key)
	switch aai.KindOf(err) {
	case aai.Park:
		p.park(op, err)
	case aai.DeadLetter:
		p.dead[op.Key] = deadLetter{err: err, want: p.want(op.Key)}
	case aai.Stop:
		p.stop(err)
	case aai.Reread:
		p.failing[op.Key] = keepsChanging(err)
		p.uncertain[op.Key] = true
	case aai.Retry:
		p.failing[op.Key] = err
		p.uncertain[op.Key] = true
		if unavailable(err) {
			p.stop(err)
		}
	}
}

// stop halts the pass. Of several errors the one to tell is that which a person has to mend, else that after which A&AI may be asked again soonest.
func (p *pass) stop(err error) {
	before := p.halt
	switch {
	case before == nil, aai.KindOf(before) != aai.Stop && aai.KindOf(err) == aai.Stop:
		p.halt = err
	case aai.KindOf(before) == aai.Stop:
	case retryAfter(err) > 0 && (retryAfter(before) == 0 || retryAfter(err) < retryAfter(before)):
		p.halt = err
	}
}

// keepsChanging turns the last Reread that an object gets in a pass into a Retry.
func keepsChanging(err error) error {
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		return err
	}
	retry := *e
	retry.Kind = aai.Retry
	retry.Message = strings.TrimSuffix("it keeps changing: "+e.Message, ": ")
	return &retry
}

// retryAfter returns how long A&AI asked to be left alone.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*aai.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// park puts an object off, and with it, for this pass, all others that need the same.
func (p *pass) park(op plan.Operation, err error) {
	p.parked[op.Key] = parking{err: err, until: p.options.Clock().Add(p.options.ParkInterval)}
	if e, ok := errors.AsType[*aai.Error](err); ok {
		if name := dependencies(op)[e.Code]; name != "" {
			p.missing[name] = err
		}
	}
}

// unavailable says whether an error concerns A&AI as a whole, so that no other request would fare better now.
func unavailable(err error) bool {
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		return false
	}
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.RetryAfter > 0
}
