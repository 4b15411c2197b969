package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// judgeNetwork is the rule for the kinds Network, ProviderNetwork and NetworkChaining of nodus (ovn4nfv-k8s-plugin), which EMCO creates. They
// report their health in status.state: https://github.com/akraino-edge-stack/icn-nodus/blob/master/pkg/apis/k8s/v1alpha1/network_types.go
func judgeNetwork(o *object, result *healthscope.Result) {
	switch state := o.text(o.status, "status.state"); {
	case state == "Created":
		result.State = healthscope.Ready
	case strings.HasSuffix(state, "InternalError"):
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
		result.Message = "status.state is " + state
	case state == "":
		pendingNotObserved(result)
	case state == "Pending", state == "Creating", state == "Deleted":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
		result.Message = "status.state is " + state
	default:
		pendingUnknownPhase(result, state)
	}
}

// judgeApplication is the rule for Applications of Argo CD, which report their health in status.health.status.
func judgeApplication(o *object, result *healthscope.Result) {
	health := o.child(o.status, "status.health")
	word := o.text(health, "status.health.status")
	result.Message = join(": ", "status.health.status is "+word, o.text(health, "status.health.message"))
	switch word {
	case "Healthy":
		result.State, result.Message = healthscope.Ready, ""
	case "Suspended":
		result.State, result.Reason, result.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
	case "Degraded":
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case "Progressing", "Missing":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
	case "":
		pendingNotObserved(result)
	case "Unknown":
		result.State, result.Reason = healthscope.Unknown, healthscope.ReasonNoRule
	default:
		pendingUnknownPhase(result, word)
	}
}

// virtualMachineFailures are the values of status.printableStatus of a machine that cannot start without a change by a user.
var virtualMachineFailures = map[string]bool{
	"CrashLoopBackOff":        true,
	"ErrImagePull":            true,
	"ImagePullBackOff":        true,
	"ErrorPvcNotFound":        true,
	"DataVolumeError":         true,
	"ErrorDataVolume":         true,
	"ErrorDataVolumeNotFound": true,
}

// judgeVirtualMachine is the rule for VirtualMachines of KubeVirt. A machine that its user has stopped is Ready and suspended; for all others the
// condition Ready decides.
func judgeVirtualMachine(o *object, result *healthscope.Result) {
	status := o.text(o.status, "status.printableStatus")
	running, isFlag := boolean(o.spec["running"])
	strategy := stringValue(o.spec["runStrategy"])
	off := isFlag && !running || strategy == "Halted" || strategy == "Manual" && status == "Stopped"
	ready := o.condition("Ready")
	switch {
	case off && (status == "Stopped" || status == "" && !ready.is("True")):
		result.State, result.Reason, result.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
		result.Message = "the virtual machine is switched off"
	case virtualMachineFailures[status]:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
		result.Message = join(": ", "status.printableStatus is "+status, ready.detail())
	case ready.exists():
		o.judgeByCondition(result, ready)
	case status != "":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
		result.Message = "status.printableStatus is " + status
	default:
		pendingNotObserved(result)
	}
}
