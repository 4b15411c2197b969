package sync

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// limiter limits the deletions of a data-source from its creation on. Its pause starts again with the first deletion that it refuses.
type limiter struct {
	*plan.DeletionLimiter

	since time.Time
}

// take reports whether a document may be deleted.
func (l *limiter) take(key aai.Key, now time.Time) bool {
	before := l.Refused()
	granted := l.Allow(key)
	if !before && l.Refused() {
		l.since = now
	}
	return granted
}

// failure is the reason why an object could not be finished, with the time of the retry.
type failure struct {
	// reason is ReasonRejected, ReasonMissingDependency or ReasonUnavailable.
	reason Reason
	err    error
	// retryAt is when to retry; zero means in the next pass. A rejected object is not retried until its desired document changes.
	retryAt time.Time
	// conflictCount is the number of consecutive conflicts with other writers.
	conflictCount int
	// document is the document that A&AI has rejected; nil for a rejected deletion.
	document *aai.Document
}

// due reports whether the object can be retried.
func (t failure) due(now time.Time) bool { return t.reason != ReasonRejected && !now.Before(t.retryAt) }

// rejected reports whether A&AI has rejected the current desired state of an object.
func (o *object) rejected() bool {
	return o.failure.reason == ReasonRejected && reflect.DeepEqual(o.failure.document, o.desired)
}

// retryAll makes every failed object due, including rejected ones. All of them are in todo after a list.
func (m *tenantState) retryAll() {
	for _, o := range m.waiting {
		if o.failure.reason == "" {
			continue
		}
		if o.failure.retryAt = (time.Time{}); o.failure.reason != ReasonUnavailable {
			o.failure = failure{}
		}
	}
	clear(m.missingTargets)
}

// requeueDue queues the objects whose wait is over.
func (m *tenantState) requeueDue(now time.Time) {
	released := map[string]bool{}
	for source, l := range m.limiters {
		switch {
		case now.Sub(l.since) < DeletionPause:
		case l.Refused():
			m.limiters[source] = &limiter{l.Next(m.owned[source]), now}
			released[source] = true
		default:
			delete(m.limiters, source)
		}
	}
	for key, o := range m.waiting {
		if o.failure.reason != "" && o.failure.due(now) || o.skipped != nil && released[o.skipped.Source] {
			m.todo[key] = o
		}
	}
}

// firstConflictPause is how long an object waits after repeated conflicts with other writers; each further pause doubles.
const firstConflictPause = time.Second

// fail records that an object cannot be finished in this pass, and why. batchSize is the number of operations in the failed request.
func (p *pass) fail(op plan.Operation, err error, batchSize int) {
	if e, ok := errors.AsType[*aai.Error](err); ok && e.NotSent { // The error does not concern this object.
		if p.unfinished = p.unfinished || e.NotBefore.IsZero() && !errors.Is(e, client.ErrNotLeading); !p.unfinished {
			p.stop(err)
		}
		return
	}
	v := p.visit(op.Key)
	p.waiting[op.Key], p.tried, v.givenUp = v.object, true, true
	conflictCount := v.failure.conflictCount
	v.failure, v.batchLimit = failure{}, 0
	switch aai.KindOf(err) {
	case aai.MissingDependency:
		v.failure = failure{reason: ReasonMissingDependency, err: p.recordMissing(op, err), retryAt: p.options.Clock().Add(DependencyInterval)}
	case aai.Rejected:
		v.failure = failure{reason: ReasonRejected, err: err, document: v.desired}
	case aai.Misconfigured:
		p.stop(err)
	case aai.Conflict:
		pause := min(firstConflictPause<<min(conflictCount, 10), DependencyInterval)
		v.failure = failure{reason: ReasonUnavailable, err: conflictAsRetry(err), retryAt: p.options.Clock().Add(pause), conflictCount: conflictCount + 1}
		v.batchLimit, v.uncertain = 1, true
	case aai.Retry:
		v.failure = failure{reason: ReasonUnavailable, err: err}
		v.batchLimit, v.uncertain = max(batchSize/2, 1), true
		if isOutage(err) {
			p.stop(err)
		}
	}
	if v.changedInFlight() { // It is tried again.
		v.givenUp, v.failure = false, failure{}
	}
}

// isOutage reports whether an error means that any other request would fail as well.
func isOutage(err error) bool {
	e, ok := errors.AsType[*aai.Error](err)
	return ok && e.Outage()
}

// stop halts the pass. Of several errors it keeps Misconfigured first, then a response of A&AI, then a request that was not sent.
func (p *pass) stop(err error) {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case aai.NotSent(err):
			return 1
		case aai.KindOf(err) != aai.Misconfigured:
			return 2
		}
		return 3
	}
	if rank(err) > rank(p.haltErr) {
		p.haltErr = err
	}
}

// conflictAsRetry turns the last Conflict that an object gets in a pass into a Retry.
func conflictAsRetry(err error) error {
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		return err
	}
	retry := *e
	retry.Kind = aai.Retry
	retry.Message = strings.TrimSuffix("it keeps changing: "+e.Message, ": ")
	return &retry
}

// recordMissing records the missing dependency of an operation, so that other operations that need it are not tried in this pass. It returns an
// error that names it, which that of A&AI does not.
func (p *pass) recordMissing(op plan.Operation, err error) error {
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		return err
	}
	switch e.Code {
	case aai.CodeNodeNotFound:
		p.tenantExists = false
		err = p.missingTenant(*e)
		p.missing[p.tenant.Path()] = err
	case aai.CodeTargetNotFound:
		missing, name := *e, targets(op)
		var words []string
		for _, r := range op.Needs() {
			words = append(words, r.String())
		}
		missing.Problem, missing.Message = aai.ProblemVNF, strings.Join(words, " or ")+" does not exist in A&AI"
		err = &missing
		p.missingTargets[name], p.missing[name] = true, err
	}
	return err
}

// missingTenant returns an error that says that the tenant does not exist.
func (p *pass) missingTenant(e aai.Error) error {
	e.Problem, e.Message = aai.ProblemTenant, fmt.Sprintf("tenant %q does not exist", p.tenant)
	return &e
}
