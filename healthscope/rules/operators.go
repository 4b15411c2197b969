package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// networkStates are the values of status.state of nodus' kinds. Those that end in InternalError mean a failure.
var networkStates = map[string]phaseClass{"Created": phaseReady, "Pending": phasePending, "Creating": phasePending, "Deleted": phasePending}

// judgeNetwork is the rule for the kinds Network, ProviderNetwork and NetworkChaining of nodus (ovn4nfv-k8s-plugin), which EMCO creates. They
// report their health in status.state: https://github.com/akraino-edge-stack/icn-nodus/blob/master/pkg/apis/k8s/v1alpha1/network_types.go
func judgeNetwork(o *object) {
	state := o.text(o.status, "status.state")
	class := networkStates[state]
	if strings.HasSuffix(state, "InternalError") {
		class = phaseFailed
	}
	phase{class: class, field: "state", word: state}.judgeAlone(o)
}

// argoHealth are the values of the health of an Application of Argo CD, except Unknown.
var argoHealth = map[string]phaseClass{
	"Healthy": phaseReady, "Suspended": phaseSuspended, "Degraded": phaseFailed, "Progressing": phasePending, "Missing": phasePending,
}

// judgeApplication is the rule for Applications of Argo CD, which report their health in status.health.status.
func judgeApplication(o *object) {
	health := o.child(o.status, "status.health")
	word := o.text(health, "status.health.status")
	p := phase{class: argoHealth[word], field: "health.status", word: word, detail: o.text(health, "status.health.message")}
	if word == "Unknown" {
		o.set(healthscope.Unknown, healthscope.ReasonNoRule, p.sentence())
		return
	}
	p.judgeAlone(o)
}

// acmeStates are the values of status.state of Orders and Challenges. RFC 8555, section 7.1.6, defines them: an order that is ready has not
// been finalized yet.
var acmeStates = map[string]phaseClass{
	"valid": phaseReady, "invalid": phaseFailed, "expired": phaseFailed, "errored": phaseFailed,
	"pending": phasePending, "processing": phasePending, "ready": phasePending,
}

// judgeACME is the rule for Orders and Challenges of cert-manager.
func judgeACME(o *object) {
	state := o.text(o.status, "status.state")
	phase{class: acmeStates[state], field: "state", word: state, detail: stringValue(o.status["reason"])}.judgeAlone(o)
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
func judgeVirtualMachine(o *object) {
	status := o.text(o.status, "status.printableStatus")
	running, isFlag := boolean(o.spec["running"])
	strategy := stringValue(o.spec["runStrategy"])
	off := isFlag && !running || strategy == "Halted" || strategy == "Manual" && status == "Stopped"
	ready := o.condition("Ready")
	switch {
	case off && (status == "Stopped" || status == "" && !ready.is("True")):
		o.suspend("the virtual machine is switched off")
	case virtualMachineFailures[status]:
		o.set(healthscope.Failed, healthscope.ReasonPhaseFailed, join(": ", "status.printableStatus is "+status, ready.detail()))
	case ready.exists():
		o.judgeByCondition(ready)
	case status != "":
		o.set(healthscope.Pending, healthscope.ReasonInProgress, "status.printableStatus is "+status)
	default:
		o.notObserved()
	}
}
