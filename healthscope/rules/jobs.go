package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeJob is the rule for Jobs. A Job that runs is Pending until it has
// completed, and serving as long as all its active pods are ready: it does what
// it is there for. Kubernetes before 1.24 does not count ready pods.
func judgeJob(o *object, verdict *healthscope.Result) {
	active, _ := o.count(o.status, "status.active")
	ready, known := o.count(o.status, "status.ready")
	failed, _ := o.count(o.status, "status.failed")
	succeeded, _ := o.count(o.status, "status.succeeded")
	suspended := o.flag(o.spec, "spec.suspend") || o.condition("Suspended").is("True")
	numbers := fmt.Sprintf("%d active, %d succeeded, %d failed", active, succeeded, failed)
	switch {
	case o.condition("Complete").is("True"):
		verdict.State, verdict.Reason, verdict.Message = healthscope.Ready, healthscope.ReasonCompleted, numbers
	case o.condition("Failed").is("True"):
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonJobFailed
		verdict.Message = join("; ", o.condition("Failed").detail(), numbers)
	case o.condition("FailureTarget").is("True"):
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonJobFailed
		verdict.Message = join("; ", o.condition("FailureTarget").detail(), numbers)
	case suspended:
		verdict.State, verdict.Reason, verdict.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
		verdict.Message = "the Job is suspended"
	case active+succeeded+failed == 0 && o.text(o.status, "status.startTime") == "":
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonNotObserved
		verdict.Message = "no controller has reported on it yet"
	default:
		verdict.State, verdict.Reason, verdict.Message = healthscope.Pending, healthscope.ReasonRunning, numbers
		verdict.Progressing = true
		verdict.Serving = active > 0 && (!known || ready >= active)
	}
}
