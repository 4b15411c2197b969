package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeClaim is the rule for PersistentVolumeClaims. The claim alone does not show whether it waits for its first consumer.
func judgeClaim(o *object, result *healthscope.Result) {
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound":
		result.State = healthscope.Ready
	case "Lost":
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonClaimLost
		result.Message = "the volume of the claim is gone"
	case "Pending":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonClaimPending
		result.Message = "no volume is bound to the claim yet"
	case "":
		pendingNotObserved(result)
	default:
		pendingUnknownPhase(result, phase)
	}
}

// judgeVolume is the rule for PersistentVolumes. A volume is Ready whether or not a claim uses it.
func judgeVolume(o *object, result *healthscope.Result) {
	detail := join(": ", stringValue(o.status["reason"]), stringValue(o.status["message"]))
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound", "Available", "Released":
		result.State = healthscope.Ready
	case "Failed":
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonVolumeFailed
		result.Message = join(": ", "the volume could not be reclaimed", detail)
	case "Pending":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonVolumePending
		result.Message = join(": ", "the volume is not available yet", detail)
	case "":
		pendingNotObserved(result)
	default:
		pendingUnknownPhase(result, phase)
	}
}

// judgeSnapshot is the rule for VolumeSnapshots and VolumeSnapshotContents. The snapshot controller retries after an error, and removes the error
// when the retry succeeds.
func judgeSnapshot(o *object, result *healthscope.Result) {
	ready := o.flag(o.status, "status.readyToUse")
	failure := o.child(o.status, "status.error")
	switch {
	case ready:
		result.State = healthscope.Ready
	case failure != nil:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonFailed
		result.Message = join(": ", "the snapshot failed", stringValue(failure["message"]))
	case len(o.status) == 0:
		pendingNotObserved(result)
	default:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
		result.Message = "the snapshot is not ready to use yet"
	}
}
