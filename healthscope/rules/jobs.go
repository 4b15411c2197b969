package rules

import (
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeJob is the rule for Jobs. A Job that runs is Pending until it has completed. It is serving while all its active pods are ready, because
// it works as intended.
func judgeJob(o *object) {
	o.requireConditions()
	active, failures, succeeded := o.number(o.status, "status.active"), o.number(o.status, "status.failed"), o.number(o.status, "status.succeeded")
	suspended, started := o.flag(o.spec, "spec.suspend"), o.text(o.status, "status.startTime") != ""
	ready, hasReady := o.optionalNumber(o.status, "status.ready") // Kubernetes before 1.24 does not count ready pods.
	numbers := fmt.Sprintf("%d active, %d succeeded, %d failed", active, succeeded, failures)
	failed := o.condition("Failed")
	if !failed.is("True") {
		failed = o.condition("FailureTarget")
	}
	switch {
	case o.condition("Complete").is("True"):
		o.set(healthscope.Ready, healthscope.ReasonCompleted, numbers)
	case failed.is("True"):
		o.set(healthscope.Failed, healthscope.ReasonJobFailed, join("; ", failed.detail(), numbers))
	case suspended || o.condition("Suspended").is("True"):
		o.suspend("the Job is suspended")
	case active+succeeded+failures == 0 && !started:
		o.notObserved()
	default:
		o.set(healthscope.Pending, healthscope.ReasonRunning, numbers)
		o.Progress = &healthscope.Progress{Generation: o.generation, Ready: toInt32(ready), Succeeded: toInt32(succeeded)}
		o.Serving = active > 0 && (!hasReady || ready >= active)
	}
}

// judgeCronJob is the rule for CronJobs: always Ready, with a warning when the last run has not succeeded. While a Job runs, its success is
// not known.
func judgeCronJob(o *object) {
	o.State = healthscope.Ready
	o.Suspended = o.flag(o.spec, "spec.suspend")
	active := len(o.list(o.status, "status.active"))
	scheduled, succeeded := o.time("status.lastScheduleTime"), o.time("status.lastSuccessfulTime")
	switch {
	case active == 0 && succeeded.Before(scheduled):
		o.warn(healthscope.ReasonLastRunFailed, "the last run has not succeeded")
	case o.Suspended:
		o.suspend("the CronJob is suspended")
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
