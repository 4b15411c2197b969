package rules

import (
	"cmp"
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// pod holds the fields that the rule for Pods reads.
type pod struct {
	phase, reason, message string
	// specContainers is the number of containers in the spec; 0 when there is no spec.
	specContainers             int
	containers, initContainers []container
}

// readPod reads a pod.
func readPod(o *object) pod {
	o.requireConditions()
	return pod{
		phase: o.text(o.status, "status.phase"), reason: stringValue(o.status["reason"]), message: stringValue(o.status["message"]),
		specContainers: len(o.list(o.spec, "spec.containers")),
		containers:     o.containers("status.containerStatuses"), initContainers: o.containers("status.initContainerStatuses"),
	}
}

// judgePod is the rule for Pods: Ready when all containers are ready, or when all have ended successfully. Ephemeral containers do not count.
func judgePod(o *object, result *healthscope.Result) {
	p := readPod(o)
	ready := 0
	for i := range p.containers {
		if p.containers[i].ready {
			ready++
		}
	}
	desired := max(len(p.containers), p.specContainers)
	result.Replicas = &healthscope.Replicas{Ready: int32(ready), Desired: int32(desired)}
	allReady := len(p.containers) > 0 && ready == desired
	switch {
	case p.phase == "Succeeded":
		result.State, result.Reason = healthscope.Ready, healthscope.ReasonCompleted
	case p.nodeLost(o):
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonNodeLost
		result.Message = "the node no longer reports"
	case allReady:
		result.State, result.Serving = healthscope.Ready, true
		p.warn(o, result)
	case p.phase == "Failed":
		result.State, result.Reason = healthscope.Failed, p.failure(o)
		result.Message = join("; ", p.message, describeNotReady(p.initContainers), describeNotReady(p.containers))
	default:
		p.judgeStarting(o, result)
	}
}

// nodeLost reports whether the node of the pod has stopped reporting. The status, which is not updated any more, may then still show ready
// containers.
func (p *pod) nodeLost(o *object) bool {
	lost := func(reason string) bool { return reason == "NodeLost" || reason == "NodeStatusUnknown" }
	return lost(p.reason) || lost(o.condition("Ready").reason)
}

// failure returns the reason why Kubernetes has given up the pod.
func (p *pod) failure(o *object) healthscope.Reason {
	reason := p.reason
	if target := o.condition("DisruptionTarget"); reason == "" && target.is("True") {
		reason = target.reason
	}
	return kubernetesReason(reason, healthscope.ReasonPodFailed)
}

// warn adds warnings to the result of a Ready pod.
func (p *pod) warn(o *object, result *healthscope.Result) {
	warn := func(reason healthscope.Reason, message string) {
		result.Warning, result.Reason, result.Message = true, reason, message
	}
	ready, gates := o.condition("Ready"), string(healthscope.ReasonReadinessGatesNotReady)
	target := o.condition("DisruptionTarget")
	switch {
	case p.phase == "Failed":
		warn(p.failure(o), "the pod has failed, its containers still count as ready")
	case target.is("True"):
		warn(healthscope.ReasonDisruptionTarget, join(": ", "the pod is about to be removed", target.detail()))
	case ready.is("False") && ready.reason != gates && sidecarDown(p.initContainers):
		warn(healthscope.ReasonContainersNotReady, describeNotReady(p.initContainers))
	case ready.is("False") && (ready.reason == gates || o.condition("ContainersReady").is("True")):
		warn(healthscope.ReasonReadinessGatesNotReady, join(": ", "all containers are ready, a readiness gate is not", ready.message))
	case ready.is("False"):
		warn(healthscope.ReasonContainersNotReady, join(": ", "all containers are ready, the pod is not", ready.message))
	case !knownPhase(p.phase):
		warn(healthscope.ReasonUnknownPhase, fmt.Sprintf("all containers are ready, the phase %q is not known", p.phase))
	}
}

// sidecarDown reports whether an init container that should keep running does not run.
func sidecarDown(inits []container) bool {
	for i := range inits {
		if !inits[i].ready && !inits[i].terminated {
			return true
		}
	}
	return false
}

// judgeStarting sets the result of a pod that is neither ready nor terminated.
func (p *pod) judgeStarting(o *object, result *healthscope.Result) {
	for _, list := range [...][]container{p.initContainers, p.containers} {
		for i := range list {
			if c := &list[i]; TerminalWaitingReasons[c.waiting] != "" {
				result.State, result.Reason, result.Message = healthscope.Failed, healthscope.Reason(c.waiting), c.describe()
				return
			}
		}
	}
	result.State = healthscope.Pending
	scheduled := o.condition("PodScheduled")
	switch {
	case p.phase == "" && len(p.containers)+len(p.initContainers)+len(o.conditions) == 0:
		pendingNotObserved(result)
	case !knownPhase(p.phase):
		pendingUnknownPhase(result, p.phase)
	case scheduled.is("False"):
		result.Reason = kubernetesReason(scheduled.reason, healthscope.ReasonUnschedulable)
		result.Message = scheduled.message
	default:
		result.Reason = healthscope.ReasonContainersNotReady
		result.Message = cmp.Or(join("; ", describeNotReady(p.initContainers), describeNotReady(p.containers)),
			fmt.Sprintf("%d of %d containers have a status", len(p.containers), result.Replicas.Desired))
	}
}

// knownPhase reports whether Kubernetes defines a phase. The empty phase is known too, because some monitors do not keep it.
func knownPhase(phase string) bool {
	switch phase {
	case "", "Pending", "Running", "Succeeded", "Failed", "Unknown":
		return true
	}
	return false
}

// pendingUnknownPhase sets the result of an object with a phase that its rule does not know.
func pendingUnknownPhase(result *healthscope.Result, phase string) {
	result.State, result.Reason, result.Warning = healthscope.Pending, healthscope.ReasonUnknownPhase, true
	result.Message = fmt.Sprintf("the phase %q is not known", phase)
}

// kubernetesReason returns a reason that Kubernetes has written, or otherwise when it is not a valid CamelCase reason.
func kubernetesReason(reason string, otherwise healthscope.Reason) healthscope.Reason {
	if len(reason) == 0 || len(reason) > 64 || reason[0] < 'A' || reason[0] > 'Z' {
		return otherwise
	}
	for _, r := range reason {
		if (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return otherwise
		}
	}
	return healthscope.Reason(reason)
}
