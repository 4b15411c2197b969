package rules

import (
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// job is what the rule for Jobs goes by.
type job struct {
	active, ready, failed, succeeded int64
	// counts is true when ready is to be relied on. Kubernetes before 1.24 does not count ready pods.
	counts             bool
	suspended, started bool
}

// readJob reads a Job.
func readJob(o *object) job {
	o.needConditions()
	read := job{
		active:    o.number(o.status, "status.active"),
		failed:    o.number(o.status, "status.failed"),
		succeeded: o.number(o.status, "status.succeeded"),
		suspended: o.flag(o.spec, "spec.suspend"),
		started:   o.text(o.status, "status.startTime") != "",
	}
	read.ready, read.counts = o.count(o.status, "status.ready")
	return read
}

// judgeJob is the rule for Jobs. A Job that runs is Pending until it has
// completed, and serving as long as all its active pods are ready: it does what
// it is there for.
func judgeJob(o *object, verdict *healthscope.Result) {
	j := readJob(o)
	numbers := fmt.Sprintf("%d active, %d succeeded, %d failed", j.active, j.succeeded, j.failed)
	failed := o.condition("Failed")
	if !failed.is("True") {
		failed = o.condition("FailureTarget")
	}
	switch {
	case o.condition("Complete").is("True"):
		verdict.State, verdict.Reason, verdict.Message = healthscope.Ready, healthscope.ReasonCompleted, numbers
	case failed.is("True"):
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonJobFailed
		verdict.Message = join("; ", failed.detail(), numbers)
	case j.suspended || o.condition("Suspended").is("True"):
		verdict.State, verdict.Reason, verdict.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
		verdict.Message = "the Job is suspended"
	case j.active+j.succeeded+j.failed == 0 && !j.started:
		pendingNotObserved(verdict)
	default:
		verdict.State, verdict.Reason, verdict.Message = healthscope.Pending, healthscope.ReasonRunning, numbers
		verdict.Progressing = true
		verdict.Progress = &healthscope.Progress{Generation: o.generation, Ready: clamp(j.ready), Succeeded: clamp(j.succeeded)}
		verdict.Serving = j.active > 0 && (!j.counts || j.ready >= j.active)
	}
}

// judgeCronJob is the rule for CronJobs: always Ready, with a warning when the
// last run has not succeeded. As long as a Job runs, nothing can be said of it.
func judgeCronJob(o *object, verdict *healthscope.Result) {
	verdict.State = healthscope.Ready
	verdict.Suspended = o.flag(o.spec, "spec.suspend")
	active := len(o.list(o.status, "status.active"))
	scheduled, succeeded := o.time("status.lastScheduleTime"), o.time("status.lastSuccessfulTime")
	switch {
	case active == 0 && succeeded.Before(scheduled):
		verdict.Warning, verdict.Reason = true, healthscope.ReasonLastRunFailed
		verdict.Message = "the last run has not succeeded"
	case verdict.Suspended:
		verdict.Reason, verdict.Message = healthscope.ReasonSuspended, "the CronJob is suspended"
	}
}

// time returns a time of the status; the zero one when it is absent.
func (o *object) time(path string) time.Time {
	text := o.text(o.status, path)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.failf("%s is not a time", path)
	}
	return t
}
