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
func judgeAutoscaler(o *object) {
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
		o.set(healthscope.Pending, kubernetesReason(able.reason, healthscope.ReasonConditionFalse), able.message)
	case active.is("False") && !disabled:
		o.set(healthscope.Pending, kubernetesReason(active.reason, healthscope.ReasonConditionFalse), active.message)
	case replicas == 0 && len(o.conditions) == 0:
		o.notObserved()
	default:
		o.State, o.Suspended = healthscope.Ready, disabled
	}
}

// judgeBudget is the rule for PodDisruptionBudgets: Failed when the controller cannot compute the budget. Too few healthy pods only cause a
// warning: the pods have their own health.
func judgeBudget(o *object) {
	current, desired := o.number(o.status, "status.currentHealthy"), o.number(o.status, "status.desiredHealthy")
	allowed := o.condition("DisruptionAllowed")
	insufficient := allowed.reason == string(healthscope.ReasonInsufficientPods)
	switch {
	case o.outdated(allowed):
		o.setStaleCondition(allowed)
	case allowed.is("False") && !insufficient:
		o.set(healthscope.Failed, kubernetesReason(allowed.reason, healthscope.ReasonConditionFalse), allowed.message)
	case o.observed <= 0 && len(o.conditions) == 0 && current+desired == 0:
		o.notObserved()
	case current < desired:
		o.State = healthscope.Ready
		o.warn(healthscope.ReasonInsufficientPods, fmt.Sprintf("%d pods are healthy, %d must be", current, desired))
	default:
		o.State = healthscope.Ready
	}
}
