package rules

import (
	"maps"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeByKstatus judges an object of a built-in kind that has no rule and no condition that decides. It uses kstatus, for which an object of
// such a kind is current when it exists.
func judgeByKstatus(o *object, result *healthscope.Result) {
	computed, err := computeKstatus(o)
	if err != nil {
		o.problemf("the status cannot be read: %v", err)
		return
	}
	switch computed.Status {
	case status.CurrentStatus:
		result.State, result.Reason = healthscope.Ready, healthscope.ReasonExists
	case status.FailedStatus:
		result.State, result.Reason, result.Message = healthscope.Failed, healthscope.ReasonFailed, computed.Message
	case status.InProgressStatus:
		result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonInProgress, computed.Message
	case status.TerminatingStatus, status.NotFoundStatus, status.UnknownStatus:
		result.State, result.Reason, result.Message = healthscope.Unknown, healthscope.ReasonNoRule, computed.Message
	}
}

// computeKstatus calls kstatus without the generations and the conditions: they have been judged before, and kstatus accepts them in one form only.
func computeKstatus(o *object) (*status.Result, error) {
	object := maps.Clone(o.root)
	metadata := maps.Clone(o.metadata)
	delete(metadata, "generation")
	object["metadata"] = metadata
	if o.status != nil {
		rest := maps.Clone(o.status)
		delete(rest, "observedGeneration")
		delete(rest, "conditions")
		object["status"] = rest
	}
	return status.Compute(&unstructured.Unstructured{Object: object})
}
