package rules

import (
	"encoding/json"
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// autoscalerConditions is the annotation with the conditions as JSON in autoscaling/v1, whose status has no conditions.
const autoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"

// judgeAutoscaler is the rule for HorizontalPodAutoscalers: Pending while it cannot scale, which includes the first minutes of its pods. Scaling
// that is disabled because the target has zero replicas is what the user wants.
func judgeAutoscaler(o *object, result *healthscope.Result) {
	replicas := o.number(o.status, "status.currentReplicas") + o.number(o.status, "status.desiredReplicas")
	if text := o.annotation(autoscalerConditions); text != "" && len(o.conditions) == 0 {
		var list []any
		if json.Unmarshal([]byte(text), &list) == nil {
			o.conditions = conditionsOf(list)
		}
	}
	able, active := o.condition("AbleToScale"), o.condition("ScalingActive")
	disabled := active.is("False") && active.reason == "ScalingDisabled"
	switch {
	case able.is("False"):
		result.State, result.Message = healthscope.Pending, able.message
		result.Reason = kubernetesReason(able.reason, healthscope.ReasonConditionFalse)
	case active.is("False") && !disabled:
		result.State, result.Message = healthscope.Pending, active.message
		result.Reason = kubernetesReason(active.reason, healthscope.ReasonConditionFalse)
	case replicas == 0 && len(o.conditions) == 0:
		pendingNotObserved(result)
	default:
		result.State, result.Suspended = healthscope.Ready, disabled
	}
}

// judgeBudget is the rule for PodDisruptionBudgets: Failed when the controller cannot compute the budget. Too few healthy pods only cause a
// warning: the pods have their own health.
func judgeBudget(o *object, result *healthscope.Result) {
	current, desired := o.number(o.status, "status.currentHealthy"), o.number(o.status, "status.desiredHealthy")
	allowed := o.condition("DisruptionAllowed")
	insufficient := allowed.reason == string(healthscope.ReasonInsufficientPods)
	switch {
	case o.outdated(allowed):
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonStaleCondition
		result.Message = "condition " + allowed.conditionType + " is of an older generation"
	case allowed.is("False") && !insufficient:
		result.State, result.Message = healthscope.Failed, allowed.message
		result.Reason = kubernetesReason(allowed.reason, healthscope.ReasonConditionFalse)
	case o.observed <= 0 && len(o.conditions) == 0 && current+desired == 0:
		pendingNotObserved(result)
	case allowed.is("False"), current < desired:
		result.State, result.Reason, result.Warning = healthscope.Ready, healthscope.ReasonInsufficientPods, true
		result.Message = fmt.Sprintf("%d pods are healthy, %d must be", current, desired)
	default:
		result.State = healthscope.Ready
	}
}
