package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// pod is a Pod, with the fields that its rule reads.
type pod struct {
	*object

	phase, reason, message     string
	containers, initContainers []container
}

// judgePod is the rule for Pods: Ready when all containers are ready, or when all have ended successfully. Ephemeral containers do not count.
func judgePod(o *object) {
	o.requireConditions()
	p := pod{
		object: o, phase: o.text(o.status, "status.phase"), reason: stringValue(o.status["reason"]), message: stringValue(o.status["message"]),
	}
	specContainers := len(o.list(o.spec, "spec.containers"))
	p.containers, p.initContainers = o.containers("status.containerStatuses"), o.containers("status.initContainerStatuses")
	ready := 0
	for i := range p.containers {
		if p.containers[i].ready {
			ready++
		}
	}
	desired := max(len(p.containers), specContainers)
	o.Replicas = &healthscope.Replicas{Ready: int32(ready), Desired: int32(desired)}
	switch {
	case p.phase == "Succeeded":
		o.set(healthscope.Ready, healthscope.ReasonCompleted, "")
	case p.nodeLost():
		o.set(healthscope.Pending, healthscope.ReasonNodeLost, "the node no longer reports")
	case len(p.containers) > 0 && ready == desired:
		o.State, o.Serving = healthscope.Ready, true
		p.addWarning()
	case p.phase == "Failed":
		o.set(healthscope.Failed, p.failure(), join("; ", p.message, p.describeNotReady()))
	default:
		p.judgeStarting()
	}
}

// nodeLost reports whether the node of the pod has stopped reporting. The status, which is not updated any more, may then still show ready
// containers. Kubernetes then only sets the condition Ready to False, without a reason; a kubelet that does so gives one.
func (p pod) nodeLost() bool {
	lost := func(reason string) bool { return reason == "NodeLost" || reason == "NodeStatusUnknown" }
	ready := p.condition("Ready")
	marked := ready.is("False") && ready.reason == "" && p.condition("ContainersReady").is("True")
	return marked || lost(p.reason) || lost(ready.reason)
}

// failure returns the reason why Kubernetes has given up the pod.
func (p pod) failure() healthscope.Reason {
	reason := p.reason
	if target := p.condition("DisruptionTarget"); reason == "" && target.is("True") {
		reason = target.reason
	}
	return kubernetesReason(reason, healthscope.ReasonPodFailed)
}

// addWarning adds a warning to the result of a Ready pod, if there is one.
func (p pod) addWarning() {
	ready, target := p.condition("Ready"), p.condition("DisruptionTarget")
	gate := ready.reason == string(healthscope.ReasonReadinessGatesNotReady)
	sidecarDown := slices.ContainsFunc(p.initContainers, func(c container) bool { return !c.ready && !c.terminated })
	switch {
	case p.phase == "Failed":
		p.warn(p.failure(), "the pod has failed, its containers still count as ready")
	case target.is("True"):
		p.warn(healthscope.ReasonDisruptionTarget, join(": ", "the pod is about to be removed", target.detail()))
	case ready.is("False") && !gate && sidecarDown:
		p.warn(healthscope.ReasonContainersNotReady, describeNotReady(p.initContainers))
	case gate:
		p.warn(healthscope.ReasonReadinessGatesNotReady, join(": ", "all containers are ready, a readiness gate is not", ready.message))
	case ready.is("False"):
		p.warn(healthscope.ReasonContainersNotReady, join(": ", "all containers are ready, the pod is not", ready.message))
	case !knownPhase(p.phase):
		p.warn(healthscope.ReasonUnknownPhase, fmt.Sprintf("all containers are ready, the phase %q is not known", p.phase))
	}
}

// judgeStarting sets the result of a pod that is neither ready nor terminated.
func (p pod) judgeStarting() {
	for _, c := range slices.Concat(p.initContainers, p.containers) {
		if TerminalWaitingReasons[c.waiting] != "" {
			p.set(healthscope.Failed, healthscope.Reason(c.waiting), c.describe())
			return
		}
	}
	scheduled := p.condition("PodScheduled")
	switch {
	case p.phase == "" && len(p.containers)+len(p.initContainers)+len(p.conditions) == 0:
		p.notObserved()
	case !knownPhase(p.phase):
		p.unknownPhase(p.phase)
	case scheduled.is("False"):
		p.set(healthscope.Pending, kubernetesReason(scheduled.reason, healthscope.ReasonUnschedulable), scheduled.message)
	default:
		p.set(healthscope.Pending, healthscope.ReasonContainersNotReady,
			cmp.Or(p.describeNotReady(), fmt.Sprintf("%d of %d containers are ready", p.Replicas.Ready, p.Replicas.Desired)))
	}
}

// describeNotReady describes the containers that are not ready, the init containers first.
func (p pod) describeNotReady() string {
	return join("; ", describeNotReady(p.initContainers), describeNotReady(p.containers))
}

// knownPhase reports whether Kubernetes defines a phase. The empty phase is known too, because some monitors do not keep it.
func knownPhase(phase string) bool {
	switch phase {
	case "", "Pending", "Running", "Succeeded", "Failed", "Unknown":
		return true
	}
	return false
}

// reasonPattern matches a valid CamelCase reason.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// kubernetesReason returns a reason that Kubernetes has written, or otherwise when it is not valid.
func kubernetesReason(reason string, otherwise healthscope.Reason) healthscope.Reason {
	if !reasonPattern.MatchString(reason) {
		return otherwise
	}
	return healthscope.Reason(reason)
}
