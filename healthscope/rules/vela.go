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
func judgeVela(o *object, verdict *healthscope.Result) {
	o.needConditions()
	phase := o.text(o.status, "status.status")
	services := o.children(o.status, "status.services")
	sick := sickService(o, services)
	verdict.Message = join("; ", "status.status is "+phase, sick)
	switch velaPhases[phase] {
	case velaFailed:
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case velaDeleting:
		verdict.State, verdict.Reason = healthscope.Terminating, healthscope.ReasonDeleting
	case velaAtWork:
		verdict.State, verdict.Reason, verdict.Progressing = healthscope.Pending, healthscope.ReasonInProgress, true
	case velaSuspended: // It waits for a user, for as long as it takes.
		verdict.State, verdict.Reason, verdict.Suspended = healthscope.Pending, healthscope.ReasonSuspended, true
		verdict.Serving = len(services) > 0 && sick == ""
	case velaRunning:
		judgeVelaRunning(o, verdict, services, sick)
	case velaUnknown:
		if phase == "" {
			pendingNotObserved(verdict)
			return
		}
		pendingUnknownPhase(verdict, phase)
	}
}

// judgeVelaRunning judges an Application whose workflow is done.
func judgeVelaRunning(o *object, verdict *healthscope.Result, services []map[string]any, sick string) {
	for _, c := range o.conditions {
		if c.is("False") {
			verdict.State, verdict.Reason, verdict.Message = healthscope.Pending, healthscope.ReasonConditionFalse, c.sentence()
			verdict.Progressing = true
			if sick != "" {
				verdict.Reason, verdict.Message = healthscope.ReasonNotHealthy, join("; ", sick, c.sentence())
			}
			return
		}
	}
	switch {
	case sick != "":
		verdict.State, verdict.Reason, verdict.Message, verdict.Progressing = healthscope.Pending, healthscope.ReasonNotHealthy, sick, true
	case len(services) < len(o.children(o.spec, "spec.components")):
		verdict.State, verdict.Reason = healthscope.Unknown, healthscope.ReasonNoRule
		verdict.Message = fmt.Sprintf("status.services lists %d of %d components", len(services), len(o.children(o.spec, "spec.components")))
	default:
		verdict.State, verdict.Message = healthscope.Ready, ""
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
