package rules

import (
	"maps"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeByKstatus judges kinds without a rule as kstatus does: by the conditions
// Reconciling, Stalled and Ready, and for want of them by existence.
func judgeByKstatus(o *object, verdict *healthscope.Result) {
	computed, err := compute(o)
	if err != nil {
		o.failf("the status cannot be read: %v", err)
		return
	}
	ready := o.condition("Ready")
	switch computed.Status {
	case status.FailedStatus:
		verdict.State, verdict.Reason, verdict.Message = healthscope.Failed, healthscope.ReasonFailed, failureByKstatus(computed)
		if c := o.condition("Stalled"); c.is("True") {
			verdict.Reason, verdict.Message = healthscope.ReasonStalled, c.detail()
		}
	case status.InProgressStatus:
		verdict.State, verdict.Progressing = healthscope.Pending, true
		verdict.Reason, verdict.Message = reasonInProgress(o, ready, computed.Message)
	default:
		verdict.State = healthscope.Ready
		if len(o.children(o.status, "status.conditions")) == 0 {
			verdict.Reason = healthscope.ReasonExists
		}
		if ready != (condition{}) && !ready.is("True") {
			verdict.State, verdict.Reason, verdict.Message = healthscope.Pending, healthscope.ReasonReadyUnknown, ready.detail()
		}
	}
}

// failureByKstatus says why kstatus calls an object failed.
func failureByKstatus(computed *status.Result) string {
	var reason string
	for _, c := range computed.Conditions {
		reason = c.Reason
	}
	return join(": ", reason, computed.Message)
}

// reasonInProgress says by which condition an object is not ready yet.
func reasonInProgress(o *object, ready condition, message string) (healthscope.Reason, string) {
	reconciling := o.condition("Reconciling")
	switch {
	case reconciling.is("True"):
		return healthscope.ReasonReconciling, reconciling.detail()
	case ready.is("False"):
		return healthscope.ReasonReadyFalse, ready.detail()
	case ready != (condition{}):
		return healthscope.ReasonReadyUnknown, ready.detail()
	default:
		return healthscope.ReasonInProgress, message
	}
}

// compute calls kstatus. It is given generations in the one form it takes, and
// without the case, decided before, that they differ.
func compute(o *object) (*status.Result, error) {
	object := maps.Clone(o.root)
	metadata := maps.Clone(o.metadata)
	generation, _ := o.count(o.metadata, "metadata.generation")
	delete(metadata, "generation")
	if generation > 0 {
		metadata["generation"] = generation
	}
	object["metadata"] = metadata
	if _, ok := o.count(o.status, "status.observedGeneration"); ok {
		observed := maps.Clone(o.status)
		observed["observedGeneration"] = generation
		object["status"] = observed
	}
	return status.Compute(&unstructured.Unstructured{Object: object})
}
