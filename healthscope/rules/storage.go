package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeClaim is the rule for PersistentVolumeClaims. The claim alone does not show whether it waits for its first consumer.
func judgeClaim(o *object) {
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound":
		o.State = healthscope.Ready
	case "Lost":
		o.set(healthscope.Failed, healthscope.ReasonClaimLost, "the volume of the claim is gone")
	case "Pending":
		o.set(healthscope.Pending, healthscope.ReasonClaimPending, "no volume is bound to the claim yet")
	case "":
		o.notObserved()
	default:
		o.unknownPhase(phase)
	}
}

// judgeVolume is the rule for PersistentVolumes. A volume is Ready whether or not a claim uses it.
func judgeVolume(o *object) {
	detail := join(": ", stringValue(o.status["reason"]), stringValue(o.status["message"]))
	switch phase := o.text(o.status, "status.phase"); phase {
	case "Bound", "Available", "Released":
		o.State = healthscope.Ready
	case "Failed":
		o.set(healthscope.Failed, healthscope.ReasonVolumeFailed, join(": ", "the volume could not be reclaimed", detail))
	case "Pending":
		o.set(healthscope.Pending, healthscope.ReasonVolumePending, join(": ", "the volume is not available yet", detail))
	case "":
		o.notObserved()
	default:
		o.unknownPhase(phase)
	}
}

// judgeSnapshot is the rule for VolumeSnapshots and VolumeSnapshotContents. The snapshot controller retries after an error, and removes the error
// when the retry succeeds.
func judgeSnapshot(o *object) {
	ready := o.flag(o.status, "status.readyToUse")
	failure := o.child(o.status, "status.error")
	switch {
	case ready:
		o.State = healthscope.Ready
	case failure != nil:
		o.set(healthscope.Failed, healthscope.ReasonFailed, join(": ", "the snapshot failed", stringValue(failure["message"])))
	case len(o.status) == 0:
		o.notObserved()
	default:
		o.set(healthscope.Pending, healthscope.ReasonInProgress, "the snapshot is not ready to use yet")
	}
}
