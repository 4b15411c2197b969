package rules

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/healthscope/healthscope/healthscope"
)

// hopeless are the reasons for which a container waits that do not go away by
// waiting. Kubernetes tries again, but what has to change is outside of it.
var hopeless = map[string]bool{
	"CrashLoopBackOff":           true,
	"ImagePullBackOff":           true,
	"ErrImagePull":               true,
	"ErrImageNeverPull":          true,
	"InvalidImageName":           true,
	"ImageInspectError":          true,
	"RegistryUnavailable":        true,
	"CreateContainerConfigError": true,
	"CreateContainerError":       true,
	"RunContainerError":          true,
}

// explained are those of them whose message says what has to change, in words
// that stay the same from one try to the next.
var explained = map[string]bool{
	"InvalidImageName":           true,
	"CreateContainerConfigError": true,
	"CreateContainerError":       true,
	"RunContainerError":          true,
}

// container is what a pod's status says of one container.
type container struct {
	name, image string
	ready       bool
	// waiting is the reason for which the container waits; empty when it does not, or does not say why.
	waiting, waitingMessage string
	// terminated says that the container has ended and runs no more; done, that it has ended well.
	terminated, done bool
	// exit tells the last end of the container: "exit code 137 (OOMKilled)". It is empty when it never ended.
	exit string
}

// judgePod is the rule for Pods: Ready when all containers are ready, or when
// all have ended well. Ephemeral containers do not count.
func judgePod(o *object, verdict *healthscope.Result) {
	phase := o.text(o.status, "status.phase")
	containers := o.containers("status.containerStatuses")
	inits := o.containers("status.initContainerStatuses")
	ready := 0
	for _, c := range containers {
		if c.ready {
			ready++
		}
	}
	wanted := max(len(containers), len(o.children(o.spec, "spec.containers")))
	verdict.Replicas = &healthscope.Replicas{Ready: int32(ready), Desired: int32(wanted)}
	allReady := len(containers) > 0 && ready == wanted
	switch {
	case phase == "Succeeded":
		verdict.State, verdict.Reason = healthscope.Ready, healthscope.ReasonCompleted
	case nodeLost(o):
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonNodeLost
		verdict.Message = "the node no longer reports"
	case allReady:
		verdict.State, verdict.Serving = healthscope.Ready, true
		warnOfPod(o, verdict, phase, inits)
	case phase == "Failed":
		failPod(o, verdict, append(inits, containers...))
	default:
		judgeStartingPod(o, verdict, phase, inits, containers)
	}
}

// containers reads a list of container statuses.
func (o *object) containers(path string) []container {
	statuses := o.children(o.status, path)
	containers := make([]container, len(statuses))
	for i, status := range statuses {
		c := &containers[i]
		c.name, c.image = word(status["name"]), word(status["image"])
		c.ready = o.flag(status, path+".ready")
		state, _ := status["state"].(map[string]any)
		waiting, _ := state["waiting"].(map[string]any)
		c.waiting, c.waitingMessage = word(waiting["reason"]), word(waiting["message"])
		terminated, _ := state["terminated"].(map[string]any)
		code, coded := wholeNumber(terminated["exitCode"])
		c.terminated, c.done = terminated != nil, coded && code == 0
		if !c.terminated {
			last, _ := status["lastState"].(map[string]any)
			terminated, _ = last["terminated"].(map[string]any)
		}
		c.exit = exitOf(terminated)
	}
	return containers
}

// exitOf puts the end of a container into words.
func exitOf(terminated map[string]any) string {
	if terminated == nil {
		return ""
	}
	code, ok := wholeNumber(terminated["exitCode"])
	reason := word(terminated["reason"])
	switch {
	case ok && reason != "":
		return fmt.Sprintf("exit code %d (%s)", code, reason)
	case ok:
		return "exit code " + strconv.FormatInt(code, 10)
	default:
		return reason
	}
}

// nodeLost says whether the pod's node has stopped to report. Its containers
// then still count as ready in the status, which nobody writes any more.
func nodeLost(o *object) bool {
	lost := func(reason string) bool { return reason == "NodeLost" || reason == "NodeStatusUnknown" }
	return lost(word(o.status["reason"])) || lost(o.condition("Ready").reason)
}

// warnOfPod adds to a Ready pod what is not right with it.
func warnOfPod(o *object, verdict *healthscope.Result, phase string, inits []container) {
	warn := func(reason healthscope.Reason, message string) {
		verdict.Warning, verdict.Reason, verdict.Message = true, reason, message
	}
	ready := o.condition("Ready")
	switch {
	case phase == "Failed":
		warn(kubernetesReason(word(o.status["reason"]), healthscope.ReasonPodFailed), "the pod has failed, its containers still count as ready")
	case ready.is("False") && ready.reason != string(healthscope.ReasonReadinessGatesNotReady) && hasSidecarDown(inits):
		warn(healthscope.ReasonContainersNotReady, describe(inits))
	case ready.is("False") && (ready.reason == string(healthscope.ReasonReadinessGatesNotReady) || o.condition("ContainersReady").is("True")):
		warn(healthscope.ReasonReadinessGatesNotReady, join(": ", "all containers are ready, a readiness gate is not", ready.message))
	case ready.is("False"):
		warn(healthscope.ReasonContainersNotReady, join(": ", "all containers are ready, the pod is not", ready.message))
	case !knownPhase(phase):
		warn(healthscope.ReasonUnknownPhase, fmt.Sprintf("all containers are ready, the phase %q is not known", phase))
	}
}

// hasSidecarDown says whether an init container that should keep running does not.
func hasSidecarDown(inits []container) bool {
	for _, c := range inits {
		if !c.ready && !c.terminated {
			return true
		}
	}
	return false
}

// failPod gives the verdict on a pod that Kubernetes has given up.
func failPod(o *object, verdict *healthscope.Result, containers []container) {
	verdict.State = healthscope.Failed
	verdict.Reason = kubernetesReason(word(o.status["reason"]), healthscope.ReasonPodFailed)
	verdict.Message = join("; ", word(o.status["message"]), describe(containers))
}

// judgeStartingPod gives the verdict on a pod that is neither ready nor at its end.
func judgeStartingPod(o *object, verdict *healthscope.Result, phase string, inits, containers []container) {
	for _, list := range [][]container{inits, containers} {
		for _, c := range list {
			if hopeless[c.waiting] {
				verdict.State, verdict.Reason, verdict.Message = healthscope.Failed, healthscope.Reason(c.waiting), c.why()
				return
			}
		}
	}
	verdict.State = healthscope.Pending
	scheduled := o.condition("PodScheduled")
	switch {
	case phase == "" && len(containers) == 0 && len(o.status) == 0:
		verdict.Reason, verdict.Message = healthscope.ReasonNotObserved, "no controller has reported on it yet"
	case !knownPhase(phase):
		verdict.Warning, verdict.Reason = true, healthscope.ReasonUnknownPhase
		verdict.Message = fmt.Sprintf("the phase %q is not known", phase)
	case scheduled.is("False"):
		verdict.Reason = kubernetesReason(scheduled.reason, healthscope.ReasonUnschedulable)
		verdict.Message = scheduled.message
	default:
		verdict.Reason = healthscope.ReasonContainersNotReady
		verdict.Message = cmp.Or(join("; ", describe(inits), describe(containers)),
			fmt.Sprintf("%d of %d containers have a status", len(containers), verdict.Replicas.Desired))
	}
}

// knownPhase says whether a phase is one that Kubernetes has. None at all is known too: not every monitor keeps it.
func knownPhase(phase string) bool {
	switch phase {
	case "", "Pending", "Running", "Succeeded", "Failed", "Unknown":
		return true
	}
	return false
}

// describe says in a few words which containers are not ready, and why. One that has ended well is done.
func describe(containers []container) string {
	var text string
	for _, c := range containers {
		if !c.ready && !c.done && len(text) < maxMessage {
			text = join("; ", text, c.why())
		}
	}
	return text
}

// why says what is wrong with a container.
func (c container) why() string {
	text := fmt.Sprintf("container %q: ", c.name)
	switch {
	case c.waiting != "":
		text += c.waiting
		if hopeless[c.waiting] && c.exit == "" && !explained[c.waiting] {
			text = join(", image ", text, c.image)
		}
		if explained[c.waiting] {
			text = join(", ", text, c.waitingMessage)
		}
	case c.terminated:
		return text + join(", ", "terminated", c.exit)
	default:
		text += "not ready"
	}
	if c.exit != "" {
		text += ", last " + c.exit
	}
	return text
}

// kubernetesReason passes a reason of Kubernetes on, unless it is none.
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
