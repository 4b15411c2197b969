package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// velaPhase is the meaning of a phase of an Application of KubeVela: https://github.com/kubevela/kubevela/blob/release-1.9/apis/core.oam.dev/common/types.go
type velaPhase int

const (
	velaUnknown velaPhase = iota
	velaRunning
	velaInProgress
	velaSuspended
	velaFailed
	velaDeleting
)

// velaPhases maps the values of status.status to their meaning.
var velaPhases = map[string]velaPhase{
	"running":  velaRunning,
	"starting": velaInProgress, "rendering": velaInProgress, "policyGenerating": velaInProgress, "runningWorkflow": velaInProgress, "rollout": velaInProgress,
	"workflowSuspending": velaSuspended,
	"workflowTerminated": velaFailed, "workflowFailed": velaFailed, "unhealthy": velaFailed,
	"deleting": velaDeleting,
}

// judgeVela is the rule for Applications of KubeVela. Their condition Ready means that they were reconciled, not that they are healthy. The
// phase, the components with their traits, and the other conditions show their health.
func judgeVela(o *object, result *healthscope.Result) {
	o.requireConditions()
	phase := o.text(o.status, "status.status")
	services := o.children(o.status, "status.services")
	unhealthy := unhealthyService(o, services)
	result.Message = join("; ", "status.status is "+phase, unhealthy)
	switch velaPhases[phase] {
	case velaFailed:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case velaDeleting:
		result.State, result.Reason = healthscope.Terminating, healthscope.ReasonDeleting
	case velaInProgress:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
	case velaSuspended: // It waits for a user, without a time limit.
		result.State, result.Reason, result.Suspended = healthscope.Pending, healthscope.ReasonSuspended, true
		result.Serving = len(services) > 0 && unhealthy == ""
	case velaRunning:
		judgeVelaRunning(o, result, services, unhealthy)
	case velaUnknown:
		if phase == "" {
			pendingNotObserved(result)
			return
		}
		pendingUnknownPhase(result, phase)
	}
}

// judgeVelaRunning judges an Application whose workflow has finished.
func judgeVelaRunning(o *object, result *healthscope.Result, services []map[string]any, unhealthy string) {
	for _, c := range o.conditions {
		if c.is("False") {
			result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonConditionFalse, c.sentence()
			if unhealthy != "" {
				result.Reason, result.Message = healthscope.ReasonNotHealthy, join("; ", unhealthy, c.sentence())
			}
			return
		}
	}
	switch {
	case unhealthy != "":
		result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonNotHealthy, unhealthy
	case len(services) < len(o.children(o.spec, "spec.components")):
		result.State, result.Reason = healthscope.Unknown, healthscope.ReasonNoRule
		result.Message = fmt.Sprintf("status.services lists %d of %d components", len(services), len(o.children(o.spec, "spec.components")))
	default:
		result.State, result.Message = healthscope.Ready, ""
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
