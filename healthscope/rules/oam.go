package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeOAMWorkload is the rule for the workloads that OAM defines. Their controllers create other objects and list them in status.resources. A
// workload has no more status than that: those objects have their own health.
func judgeOAMWorkload(o *object) {
	o.requireConditions()
	resources := o.children(o.status, "status.resources")
	failed, _ := o.failure()
	switch {
	case failed:
	case len(resources) == 0:
		o.set(healthscope.Pending, healthscope.ReasonNotObserved, "status.resources names nothing that was made for the workload")
	default:
		o.set(healthscope.Ready, healthscope.ReasonExists, "")
	}
}

// judgeVela is the rule for Applications of KubeVela. Their condition Ready means that they were reconciled, not that they are healthy. The
// phase, the components with their traits, and the other conditions show their health. The phases are those of
// https://github.com/kubevela/kubevela/blob/release-1.9/apis/core.oam.dev/common/types.go
func judgeVela(o *object) {
	o.requireConditions()
	phase := o.text(o.status, "status.status")
	services := o.children(o.status, "status.services")
	unhealthy := unhealthyService(o, services)
	text := join("; ", "status.status is "+phase, unhealthy)
	switch phase {
	case "running":
		judgeVelaRunning(o, services, unhealthy)
	case "starting", "rendering", "policyGenerating", "runningWorkflow", "rollout":
		o.set(healthscope.Pending, healthscope.ReasonInProgress, text)
	case "workflowSuspending": // It waits for a user, without a time limit.
		o.set(healthscope.Pending, healthscope.ReasonSuspended, text)
		o.Suspended, o.Serving = true, len(services) > 0 && unhealthy == ""
	case "workflowTerminated", "workflowFailed", "unhealthy":
		o.set(healthscope.Failed, healthscope.ReasonPhaseFailed, text)
	case "deleting":
		o.set(healthscope.Terminating, healthscope.ReasonDeleting, text)
	case "":
		o.notObserved()
	default:
		o.unknownPhase(phase)
	}
}

// judgeVelaRunning judges an Application whose workflow has finished.
func judgeVelaRunning(o *object, services []map[string]any, unhealthy string) {
	for _, c := range o.conditions {
		if c.is("False") {
			reason := healthscope.ReasonConditionFalse
			if unhealthy != "" {
				reason = healthscope.ReasonNotHealthy
			}
			o.set(healthscope.Pending, reason, join("; ", unhealthy, c.sentence()))
			return
		}
	}
	if unhealthy != "" {
		o.set(healthscope.Pending, healthscope.ReasonNotHealthy, unhealthy)
		return
	}
	o.State = healthscope.Ready
	if components := len(o.children(o.spec, "spec.components")); len(services) < components {
		o.set(healthscope.Unknown, healthscope.ReasonNoRule, fmt.Sprintf("status.services lists %d of %d components", len(services), components))
	}
}

// unhealthyService names the first component or trait that is not healthy; "" when there is none.
func unhealthyService(o *object, services []map[string]any) string {
	for _, service := range services {
		if isUnhealthy(o, service, "status.services.healthy") {
			return join(": ", "component "+stringValue(service["name"])+" is not healthy", stringValue(service["message"]))
		}
		for _, trait := range o.children(service, "status.services.traits") {
			if isUnhealthy(o, trait, "status.services.traits.healthy") {
				return join(": ", "trait "+stringValue(trait["type"])+" of component "+stringValue(service["name"])+" is not healthy", stringValue(trait["message"]))
			}
		}
	}
	return ""
}

// isUnhealthy reports whether a component or trait is reported as not healthy. Without a report, KubeVela has no health rule for it.
func isUnhealthy(o *object, part map[string]any, path string) bool {
	return part["healthy"] != nil && !o.flag(part, path)
}
