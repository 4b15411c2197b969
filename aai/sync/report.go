package sync

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/healthscope"
)

// State is the sync state of an object.
type State string

// The states. An object that is neither desired nor in A&AI has none.
const (
	// Synced means that A&AI holds the desired document.
	Synced State = "Synced"
	// Pending means that A&AI does not hold it yet, and that it will be retried.
	Pending State = "Pending"
	// Failed means that A&AI does not hold it, and that it is not retried until the desired document changes or the next resync.
	Failed State = "Failed"
)

// Reason is why an object is not synced.
type Reason string

// The reasons.
const (
	// ReasonNotTried means that the pass ended before the object had its turn.
	ReasonNotTried Reason = "NotTried"
	// ReasonUnavailable means that A&AI was not available for the object.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonMissingDependency means that the tenant, or the target of a relationship, does not exist in A&AI.
	ReasonMissingDependency Reason = "MissingDependency"
	// ReasonRejected means that A&AI has rejected the document.
	ReasonRejected Reason = "Rejected"
	// ReasonConflict means that a document of another owner has the key of the object.
	ReasonConflict Reason = "Conflict"
)

// ObjectStatus is the sync status of one object.
type ObjectStatus struct {
	// State is the sync state.
	State State
	// Reason is why the object is not synced; empty when it is.
	Reason Reason
	// Message describes the reason for people.
	Message string
	// Resource is the resource that the object describes; the zero key when it is neither desired nor in A&AI.
	Resource healthscope.Key
}

// Report is the outcome of a pass.
type Report struct {
	// Changed holds the objects whose status has changed since the previous pass. The state is empty for objects that are neither desired nor
	// in A&AI any more.
	Changed map[aai.Key]ObjectStatus
	// Synced, Pending and Failed count all objects of the tenant by state.
	Synced, Pending, Failed int
	// Skipped are all documents whose deletion was skipped, sorted by key.
	Skipped []plan.Skipped
	// Acknowledged holds the objects that this pass wrote, with the time of A&AI's last acknowledgement.
	Acknowledged map[aai.Key]time.Time
	// Lags are, for each object that this pass wrote, the time from the oldest change that A&AI had not acknowledged to the acknowledgement.
	Lags []time.Duration
	// Missing is what a person must create in A&AI: ProblemTenant or ProblemVNF; empty when nothing is missing.
	Missing aai.Problem
	// NextPass is the time of the next pass even if nothing changes: for the next resync, or for the retry of an object.
	NextPass time.Time
}

// report returns the outcome of the pass.
func (p *pass) report() Report {
	r := Report{Changed: map[aai.Key]ObjectStatus{}, Acknowledged: map[aai.Key]time.Time{}, Lags: p.lags}
	for _, key := range slices.SortedFunc(maps.Keys(p.visits), aai.Key.Compare) {
		v := p.visits[key]
		now := p.statusOf(v.object)
		now.Resource = v.resource()
		if lag, known := v.lag(now); known {
			r.Lags = append(r.Lags, lag)
		}
		if !v.acknowledged.IsZero() {
			r.Acknowledged[key] = v.acknowledged
		}
		if v.reported != now && (v.reported.State != "" || now.State != "") {
			r.Changed[key] = now
			p.recordStatus(v.object, now)
		}
		p.settle(v.object)
	}
	r.Synced, r.Pending, r.Failed = p.counts[Synced], p.counts[Pending], p.counts[Failed]
	for _, key := range slices.SortedFunc(maps.Keys(p.waiting), aai.Key.Compare) {
		if skipped := p.waiting[key].skipped; skipped != nil {
			r.Skipped = append(r.Skipped, *skipped)
		}
	}
	r.NextPass, r.Missing = p.nextPass(), p.missingProblem()
	return r
}

// missingProblem returns what a person must create before all objects can be written.
func (p *pass) missingProblem() aai.Problem {
	problem := aai.Problem("")
	for _, o := range p.waiting {
		if o.failure.reason != ReasonMissingDependency {
			continue
		}
		e, ok := errors.AsType[*aai.Error](o.failure.err)
		if ok && e.Problem == aai.ProblemTenant {
			return aai.ProblemTenant
		}
		if ok && e.Problem == aai.ProblemVNF {
			problem = aai.ProblemVNF
		}
	}
	return problem
}

// lag returns the lag of an object if the pass has written it, and forgets the time of the oldest change of an object that needs nothing any
// more. A held object keeps it, although it has no status.
func (v *visit) lag(now ObjectStatus) (lag time.Duration, known bool) {
	if now.State != "" && now.State != Synced || v.held {
		return 0, false
	}
	since := v.unacknowledged
	v.unacknowledged = time.Time{}
	return max(v.acknowledged.Sub(since), 0), !v.acknowledged.IsZero() && !since.IsZero()
}

// recordStatus stores the status of an object and updates the counts.
func (p *pass) recordStatus(o *object, now ObjectStatus) {
	if o.reported.State != "" {
		p.counts[o.reported.State]--
	}
	o.reported = ObjectStatus{}
	if now.State != "" {
		o.reported = now
		p.counts[now.State]++
	}
}

// resource returns the resource that an object describes.
func (o *object) resource() healthscope.Key {
	d := cmp.Or(o.desired, o.observed)
	if d == nil {
		return healthscope.Key{}
	}
	return healthscope.Key{Cluster: d.DataSource, Group: d.Group, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}
}

// statusOf returns the status of an object, and drops its outdated failures.
func (p *pass) statusOf(o *object) ObjectStatus {
	if o.rejected() {
		return ObjectStatus{State: Failed, Reason: ReasonRejected, Message: o.failure.err.Error()}
	}
	if o.failure.reason == ReasonRejected {
		o.failure = failure{}
	}
	if !o.held && o.conflict == nil && p.needsWork(o) {
		switch {
		case o.failure.reason != "":
			return ObjectStatus{State: Pending, Reason: o.failure.reason, Message: o.failure.err.Error()}
		case p.haltErr != nil:
			return notTried(p.haltErr)
		default:
			return ObjectStatus{State: Pending, Reason: ReasonNotTried}
		}
	}
	o.failure, o.batchLimit = failure{}, 0
	switch {
	case o.held:
		return ObjectStatus{}
	case o.conflict != nil:
		return ObjectStatus{State: Failed, Reason: ReasonConflict, Message: fmt.Sprintf("%q belongs to data-owner %q", o.key.Path(), o.conflict.Owner)}
	case o.desired != nil:
		return ObjectStatus{State: Synced}
	}
	return ObjectStatus{}
}

// needsWork reports whether an object still needs a request.
func (p *pass) needsWork(o *object) bool {
	return o.uncertain || o.skipped == nil && len(p.options.Plan.Decide(o.key, o.desired, o.observed, p.guards).Operations) > 0
}

// nextPass returns the time of the next pass even if nothing changes.
func (p *pass) nextPass() time.Time {
	next := p.options.Clock()
	if p.resynced.IsZero() || p.unfinished {
		return next
	}
	next = p.nextResync(p.resynced)
	earlier := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	for _, o := range p.waiting {
		if !o.failure.retryAt.IsZero() {
			earlier(o.failure.retryAt)
		}
	}
	for _, l := range p.limiters {
		if l.Refused() {
			earlier(l.since.Add(DeletionPause))
		}
	}
	return next
}

// err returns the error of the pass: the error that halted it, or else that of the first object that failed because A&AI is unavailable.
func (p *pass) err() error {
	err := p.haltErr
	for _, key := range slices.SortedFunc(maps.Keys(p.waiting), aai.Key.Compare) {
		if t := p.waiting[key].failure; err == nil && t.reason == ReasonUnavailable && t.retryAt.IsZero() { // What others keep changing is no error of A&AI.
			err = t.err
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot synchronize tenant %q: %w", p.tenant, err)
}
