package sync

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// troubles are why objects are not as desired.
type troubles struct {
	// failing are objects whose last request failed in a way that may pass.
	failing map[aai.Key]failure
	// parked are objects that wait for what they depend on.
	parked map[aai.Key]parking
	// absent are, by name, the targets of relationships that A&AI did not have when it was last asked.
	absent map[string]bool
	// dead are objects that A&AI will not take.
	dead map[aai.Key]deadLetter
	// conflicts are objects whose place is taken.
	conflicts map[aai.Key]plan.Conflict
	// skipped are documents that should go and stay.
	skipped map[aai.Key]plan.Skipped
	// limiters limit deletions, by data-source.
	limiters map[string]*limiter
}

// limiter limits the deletions of a data-source from when it was made, and starts its pause again with the first that it refuses.
type limiter struct {
	*plan.DeletionLimiter

	since time.Time
}

// take reports whether a document may go.
func (b *limiter) take(key aai.Key, now time.Time) bool {
	before := b.Refused()
	granted := b.Take(key)
	if !before && b.Refused() {
		b.since = now
	}
	return granted
}

// failure says how the last request about an object failed.
type failure struct {
	err error
	// together is how many operations the request had.
	together int
	// until is when to try the object again that others keep changing; zero for the next pass.
	until time.Time
	// times is how often in a row others were faster.
	times int
}

// parking says why an object waits and when to try it again.
type parking struct {
	err   error
	until time.Time
}

// deadLetter says why A&AI will not take an object, and what it was offered; nil for the deletion.
type deadLetter struct {
	err  error
	want *aai.Document
}

// given reports whether an object is in the dead letters for just what is wanted now.
func (m *memory) given(key aai.Key) bool {
	letter, ok := m.dead[key]
	return ok && reflect.DeepEqual(letter.want, m.desired[key])
}

// retryAll gives a new chance to what was put off or given up.
func (m *memory) retryAll() {
	for key := range m.parked {
		m.todo[key] = true
	}
	for key := range m.dead {
		m.todo[key] = true
	}
	for key, f := range m.failing {
		f.until = time.Time{}
		m.failing[key], m.todo[key] = f, true
	}
	m.parked, m.absent, m.dead = map[aai.Key]parking{}, map[string]bool{}, map[aai.Key]deadLetter{}
}

// revive puts what has waited long enough among the things to do.
func (m *memory) revive(now time.Time, pause time.Duration) {
	for key, parked := range m.parked {
		if !now.Before(parked.until) {
			m.todo[key] = true
		}
	}
	for key, f := range m.failing {
		if !now.Before(f.until) {
			m.todo[key] = true
		}
	}
	released := map[string]bool{}
	for source, b := range m.limiters {
		switch {
		case now.Sub(b.since) < pause:
		case b.Refused():
			m.limiters[source] = &limiter{b.Next(m.owned[source]), now}
			released[source] = true
		default:
			delete(m.limiters, source)
		}
	}
	for key, skipped := range m.skipped {
		if skipped.Cause == plan.CauseLimit && released[skipped.Source] {
			m.todo[key] = true
		}
	}
}

// firstRereadPause is how long an object waits after others were faster several times; the next pauses double.
const firstRereadPause = time.Second

// fail notes that an object cannot be finished in this pass, and why. together is how many operations failed with it.
func (p *pass) fail(op plan.Operation, err error, together int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := errors.AsType[*aai.Error](err); ok && e.NotSent { // It says nothing of this object.
		if p.unfinished = p.unfinished || e.NotBefore.IsZero(); !p.unfinished {
			p.stop(err)
		}
		return
	}
	p.settled[op.Key] = true
	before := p.failing[op.Key]
	delete(p.failing, op.Key)
	switch aai.KindOf(err) {
	case aai.Park:
		p.park(op, err)
	case aai.DeadLetter:
		p.dead[op.Key] = deadLetter{err: err, want: p.desired[op.Key]}
		delete(p.parked, op.Key)
	case aai.Stop:
		p.stop(err)
	case aai.Reread:
		pause := min(firstRereadPause<<min(before.times, 10), p.options.ParkInterval)
		p.failing[op.Key] = failure{err: keepsChanging(err), together: 1, until: p.options.Clock().Add(pause), times: before.times + 1}
		p.uncertain[op.Key] = true
	case aai.Retry:
		p.failing[op.Key] = failure{err: err, together: together}
		p.uncertain[op.Key] = true
		if outage(err) {
			p.stop(err)
		}
	}
}

// notSent reports whether an error is about a request that was not sent.
func notSent(err error) bool {
	e, ok := errors.AsType[*aai.Error](err)
	return ok && e.NotSent
}

// outage reports whether an error means that no other request would fare better now.
func outage(err error) bool {
	e, ok := errors.AsType[*aai.Error](err)
	return ok && e.Outage()
}

// stop halts the pass. Of several errors it keeps an answer of A&AI before what was not sent, and first that which a person has to mend.
func (p *pass) stop(err error) {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case notSent(err):
			return 1
		case aai.KindOf(err) != aai.Stop:
			return 2
		}
		return 3
	}
	if rank(err) > rank(p.halt) {
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

// park puts an object off, and with it, for this pass, all others that need the same.
func (p *pass) park(op plan.Operation, err error) {
	if e, ok := errors.AsType[*aai.Error](err); ok {
		switch e.Code {
		case aai.CodeNodeNotFound:
			p.exists, p.lost = false, true
			p.missing[p.tenant.Path()] = err
		case aai.CodeTargetNotFound:
			name := targets(op)
			err = vnfMissing(e, op)
			p.absent[name], p.missing[name] = true, err
		}
	}
	p.parked[op.Key] = parking{err: err, until: p.options.Clock().Add(p.options.ParkInterval)}
}

// vnfMissing says which targets of an operation do not exist; A&AI's own words say less.
func vnfMissing(e *aai.Error, op plan.Operation) error {
	needs := op.Needs()
	names := make([]string, 0, len(needs))
	for _, r := range needs {
		names = append(names, r.String())
	}
	missing := *e
	missing.Problem, missing.Message = aai.ProblemVNF, strings.Join(names, " or ")+" does not exist in A&AI"
	return &missing
}
