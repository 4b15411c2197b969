package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// velaPhase is what a phase of an Application of KubeVela says: https://github.com/kubevela/kubevela/blob/release-1.9/apis/core.oam.dev/common/types.go
type velaPhase int

const (
	velaUnknown velaPhase = iota
	velaRunning
	velaAtWork
	velaSuspended
	velaFailed
	velaDeleting
)

// velaPhases are the words of status.status.
var velaPhases = map[string]velaPhase{
	"running":  velaRunning,
	"starting": velaAtWork, "rendering": velaAtWork, "policyGenerating": velaAtWork, "runningWorkflow": velaAtWork, "rollout": velaAtWork,
	"workflowSuspending": velaSuspended,
	"workflowTerminated": velaFailed, "workflowFailed": velaFailed, "unhealthy": velaFailed,
	"deleting": velaDeleting,
}

// judgeVela is the rule for Applications of KubeVela. Their condition Ready says that they were reconciled, which is no word on
// health: the phase, the components with their traits, and the other conditions are.
func judgeVela(o *object, result *healthscope.Result) {
	o.needConditions()
	phase := o.text(o.status, "status.status")
	services := o.children(o.status, "status.services")
	sick := sickService(o, services)
	result.Message = join("; ", "status.status is "+phase, sick)
	switch velaPhases[phase] {
	case velaFailed:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case velaDeleting:
		result.State, result.Reason = healthscope.Terminating, healthscope.ReasonDeleting
	case velaAtWork:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
	case velaSuspended: // It waits for a user, for as long as it takes.
		result.State, result.Reason, result.Suspended = healthscope.Pending, healthscope.ReasonSuspended, true
		result.Serving = len(services) > 0 && sick == ""
	case velaRunning:
		judgeVelaRunning(o, result, services, sick)
	case velaUnknown:
		if phase == "" {
			pendingNotObserved(result)
			return
		}
		pendingUnknownPhase(result, phase)
	}
}

// judgeVelaRunning judges an Application whose workflow is done.
func judgeVelaRunning(o *object, result *healthscope.Result, services []map[string]any, sick string) {
	for _, c := range o.conditions {
		if c.is("False") {
			result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonConditionFalse, c.sentence()
			if sick != "" {
				result.Reason, result.Message = healthscope.ReasonNotHealthy, join("; ", sick, c.sentence())
			}
			return
		}
	}
	switch {
	case sick != "":
		result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonNotHealthy, sick
	case len(services) < len(o.children(o.spec, "spec.components")):
		result.State, result.Reason = healthscope.Unknown, healthscope.ReasonNoRule
		result.Message = fmt.Sprintf("status.services lists %d of %d components", len(services), len(o.children(o.spec, "spec.components")))
	default:
		result.State, result.Message = healthscope.Ready, ""
	}
}

// sickService names the first component, or trait of one, that is not healthy; "" when there is none.
func sickService(o *object, services []map[string]any) string {
	for _, service := range services {
		if sick(o, service, "status.services.healthy") {
			return join(": ", "component "+word(service["name"])+" is not healthy", word(service["message"]))
		}
		for _, trait := range o.children(service, "status.services.traits") {
			if sick(o, trait, "status.services.traits.healthy") {
				return join(": ", "trait "+word(trait["type"])+" of component "+word(service["name"])+" is not healthy", word(trait["message"]))
			}
		}
	}
	return ""
}

// sick reports whether a component or trait says that it is not healthy. One that does not say has no rule for it in KubeVela.
func sick(o *object, part map[string]any, path string) bool {
	return part["healthy"] != nil && !o.flag(part, path)
}
