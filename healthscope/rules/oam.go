package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeOAMWorkload is the rule for the workloads of OAM itself, for which their controllers make other objects and name them in
// status.resources. The workload says no more than that: those objects have their own health.
func judgeOAMWorkload(o *object, verdict *healthscope.Result) {
	o.needConditions()
	resources := o.children(o.status, "status.resources")
	failed, _ := o.failure(verdict)
	switch {
	case failed:
	case len(resources) == 0:
		pendingNotObserved(verdict)
		verdict.Message = "status.resources names nothing that was made for the workload"
	default:
		verdict.State, verdict.Reason = healthscope.Ready, healthscope.ReasonExists
	}
}
