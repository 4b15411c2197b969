package sync

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// failures are why objects are not as desired.
type failures struct {
	// failed are objects that could not be finished.
	failed map[aai.Key]failure
	// limits are how many operations a request may have with an object that was refused, or failed, together with others.
	limits map[aai.Key]int
	// absent are, by name, the targets of relationships that A&AI did not have when it was last asked.
	absent map[string]bool
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

// failure says why an object could not be finished, and when to try it again.
type failure struct {
	// reason is ReasonRejected, ReasonMissingDependency or ReasonUnavailable.
	reason Reason
	err    error
	// until is when to try it again; zero for the next pass. What was rejected is not tried again before it is to be otherwise.
	until time.Time
	// times is how often in a row others were faster.
	times int
	// want is what A&AI has rejected; nil for the deletion.
	want *aai.Document
}

// due reports whether the object is to be tried again.
func (t failure) due(now time.Time) bool { return t.reason != ReasonRejected && !now.Before(t.until) }

// rejected reports whether A&AI has rejected just what is wanted of an object now.
func (m *memory) rejected(key aai.Key) bool {
	t := m.failed[key]
	return t.reason == ReasonRejected && reflect.DeepEqual(t.want, m.desired[key])
}

// retryAll gives a new chance to what was put off or given up.
func (m *memory) retryAll() {
	for key, t := range m.failed {
		m.todo[key] = true
		if t.until = (time.Time{}); t.reason == ReasonUnavailable {
			m.failed[key] = t
		} else {
			delete(m.failed, key)
		}
	}
	clear(m.absent)
}

// requeueDue puts what has waited long enough among the things to do.
func (m *memory) requeueDue(now time.Time, pause time.Duration) {
	for key, t := range m.failed {
		if t.due(now) {
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

// firstConflictPause is how long an object waits after others were faster several times; the next pauses double.
const firstConflictPause = time.Second

// fail notes that an object cannot be finished in this pass, and why. together is how many operations failed with it.
func (p *pass) fail(op plan.Operation, err error, together int) {
	if e, ok := errors.AsType[*aai.Error](err); ok && e.NotSent { // It says nothing of this object.
		if p.unfinished = p.unfinished || e.NotBefore.IsZero() && !errors.Is(e, client.ErrNotLeading); !p.unfinished {
			p.stop(err)
		}
		return
	}
	p.settled[op.Key] = true
	times := p.failed[op.Key].times
	delete(p.failed, op.Key)
	delete(p.limits, op.Key)
	switch aai.KindOf(err) {
	case aai.MissingDependency:
		p.failed[op.Key] = failure{reason: ReasonMissingDependency, err: p.lack(op, err), until: p.options.Clock().Add(p.options.DependencyInterval)}
	case aai.Rejected:
		p.failed[op.Key] = failure{reason: ReasonRejected, err: err, want: p.desired[op.Key]}
	case aai.Misconfigured:
		p.stop(err)
	case aai.Conflict:
		pause := min(firstConflictPause<<min(times, 10), p.options.DependencyInterval)
		p.failed[op.Key] = failure{reason: ReasonUnavailable, err: keepsChanging(err), until: p.options.Clock().Add(pause), times: times + 1}
		p.limits[op.Key], p.uncertain[op.Key] = 1, true
	case aai.Retry:
		p.failed[op.Key] = failure{reason: ReasonUnavailable, err: err}
		p.limits[op.Key], p.uncertain[op.Key] = max(together/2, 1), true
		if outage(err) {
			p.stop(err)
		}
	}
	if want, busy := p.busy[op.Key]; busy && want != p.desired[op.Key] { // It is to be otherwise by now, and is tried again.
		delete(p.settled, op.Key)
		delete(p.failed, op.Key)
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

// stop halts the pass. Of several errors it keeps an answer of A&AI before what was not sent, and first that which a person has to repair.
func (p *pass) stop(err error) {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case notSent(err):
			return 1
		case aai.KindOf(err) != aai.Misconfigured:
			return 2
		}
		return 3
	}
	if rank(err) > rank(p.halt) {
		p.halt = err
	}
}

// keepsChanging turns the last Conflict that an object gets in a pass into a Retry.
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

// lack notes what an operation lacks, so that others that need the same are not tried in this pass, and returns the error that says it.
func (p *pass) lack(op plan.Operation, err error) error {
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
	return err
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
