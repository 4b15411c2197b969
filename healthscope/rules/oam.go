package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeOAMWorkload is the rule for the workloads that OAM defines. Their controllers create other objects and list them in status.resources. A
// workload has no more status than that: those objects have their own health.
func judgeOAMWorkload(o *object, result *healthscope.Result) {
	o.requireConditions()
	resources := o.children(o.status, "status.resources")
	failed, _ := o.failure(result)
	switch {
	case failed:
	case len(resources) == 0:
		pendingNotObserved(result)
		result.Message = "status.resources names nothing that was made for the workload"
	default:
		result.State, result.Reason = healthscope.Ready, healthscope.ReasonExists
	}
}
