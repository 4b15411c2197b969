package rules

import (
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// job holds the fields that the rule for Jobs reads.
type job struct {
	active, ready, failed, succeeded int64
	// hasReady is true when ready is reliable. Kubernetes before 1.24 does not count ready pods.
	hasReady           bool
	suspended, started bool
}

// readJob reads a Job.
func readJob(o *object) job {
	o.requireConditions()
	read := job{
		active:    o.number(o.status, "status.active"),
		failed:    o.number(o.status, "status.failed"),
		succeeded: o.number(o.status, "status.succeeded"),
		suspended: o.flag(o.spec, "spec.suspend"),
		started:   o.text(o.status, "status.startTime") != "",
	}
	read.ready, read.hasReady = o.optionalNumber(o.status, "status.ready")
	return read
}

// judgeJob is the rule for Jobs. A Job that runs is Pending until it has completed. It is serving while all its active pods are ready, because
// it works as intended.
func judgeJob(o *object, result *healthscope.Result) {
	j := readJob(o)
	numbers := fmt.Sprintf("%d active, %d succeeded, %d failed", j.active, j.succeeded, j.failed)
	failed := o.condition("Failed")
	if !failed.is("True") {
		failed = o.condition("FailureTarget")
	}
	switch {
	case o.condition("Complete").is("True"):
		result.State, result.Reason, result.Message = healthscope.Ready, healthscope.ReasonCompleted, numbers
	case failed.is("True"):
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonJobFailed
		result.Message = join("; ", failed.detail(), numbers)
	case j.suspended || o.condition("Suspended").is("True"):
		result.State, result.Reason, result.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
		result.Message = "the Job is suspended"
	case j.active+j.succeeded+j.failed == 0 && !j.started:
		pendingNotObserved(result)
	default:
		result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonRunning, numbers
		result.Progress = &healthscope.Progress{Generation: o.generation, Ready: toInt32(j.ready), Succeeded: toInt32(j.succeeded)}
		result.Serving = j.active > 0 && (!j.hasReady || j.ready >= j.active)
	}
}

// judgeCronJob is the rule for CronJobs: always Ready, with a warning when the last run has not succeeded. While a Job runs, its success is
// not known.
func judgeCronJob(o *object, result *healthscope.Result) {
	result.State = healthscope.Ready
	result.Suspended = o.flag(o.spec, "spec.suspend")
	active := len(o.list(o.status, "status.active"))
	scheduled, succeeded := o.time("status.lastScheduleTime"), o.time("status.lastSuccessfulTime")
	switch {
	case active == 0 && succeeded.Before(scheduled):
		result.Warning, result.Reason = true, healthscope.ReasonLastRunFailed
		result.Message = "the last run has not succeeded"
	case result.Suspended:
		result.Reason, result.Message = healthscope.ReasonSuspended, "the CronJob is suspended"
	}
}

// time returns a time of the status; the zero time when it is absent.
func (o *object) time(path string) time.Time {
	text := o.text(o.status, path)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.problemf("%s is not a time", path)
	}
	return t
}
