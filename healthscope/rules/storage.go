package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeClaim is the rule for PersistentVolumeClaims.
func judgeClaim(o *object, verdict *healthscope.Result) {
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound":
		verdict.State = healthscope.Ready
	case "Lost":
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonClaimLost
		verdict.Message = "the volume of the claim is gone"
	case "Pending":
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonClaimPending
		verdict.Message = "no volume is bound to the claim yet"
	case "":
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonNotObserved
		verdict.Message = "no controller has reported on it yet"
	default:
		verdict.State, verdict.Reason, verdict.Warning = healthscope.Pending, healthscope.ReasonUnknownPhase, true
		verdict.Message = fmt.Sprintf("the phase %q is not known", phase)
	}
}

// judgeExistence is the rule for kinds that have no health of their own.
func judgeExistence(_ *object, verdict *healthscope.Result) {
	verdict.State, verdict.Reason = healthscope.Ready, healthscope.ReasonExists
}
