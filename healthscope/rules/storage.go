package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeClaim is the rule for PersistentVolumeClaims. Whether a claim waits for
// its first consumer cannot be seen from the claim alone.
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
		pendingNotObserved(verdict)
	default:
		pendingUnknownPhase(verdict, phase)
	}
}

// judgeVolume is the rule for PersistentVolumes. One that no claim uses, or no longer, is as good as any.
func judgeVolume(o *object, verdict *healthscope.Result) {
	detail := join(": ", word(o.status["reason"]), word(o.status["message"]))
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound", "Available", "Released":
		verdict.State = healthscope.Ready
	case "Failed":
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonVolumeFailed
		verdict.Message = join(": ", "the volume could not be reclaimed", detail)
	case "Pending":
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonVolumePending
		verdict.Message = join(": ", "the volume is not available yet", detail)
	case "":
		pendingNotObserved(verdict)
	default:
		pendingUnknownPhase(verdict, phase)
	}
}

// judgeSnapshot is the rule for VolumeSnapshots and their contents. The
// snapshot controller tries again after an error and takes it back when that helps.
func judgeSnapshot(o *object, verdict *healthscope.Result) {
	ready := o.flag(o.status, "status.readyToUse")
	failure := o.child(o.status, "status.error")
	switch {
	case ready:
		verdict.State = healthscope.Ready
	case failure != nil:
		verdict.State, verdict.Reason = healthscope.Failed, healthscope.ReasonFailed
		verdict.Message = join(": ", "the snapshot failed", word(failure["message"]))
	case len(o.status) == 0:
		pendingNotObserved(verdict)
	default:
		verdict.State, verdict.Reason, verdict.Progressing = healthscope.Pending, healthscope.ReasonInProgress, true
		verdict.Message = "the snapshot is not ready to use yet"
	}
}
