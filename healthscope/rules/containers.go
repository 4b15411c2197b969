package rules

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// TerminalWaitingReasons are the reasons for which a container waits that do not go away by waiting, with what to do about each, in Markdown for the
// documentation.
var TerminalWaitingReasons = map[string]string{
	"CrashLoopBackOff":           "The container ends again and again. Look at its last exit code in the message, and at `kubectl logs --previous`.",
	"ImagePullBackOff":           "The image cannot be pulled. Check name, tag, registry and pull secret.",
	"ErrImagePull":               "As `ImagePullBackOff`.",
	"ErrImageNeverPull":          "The image is not on the node, and the pull policy is Never.",
	"InvalidImageName":           "The image name is invalid.",
	"ImageInspectError":          "The node cannot read the image it has. Look at the node's container runtime.",
	"RegistryUnavailable":        "The registry does not answer.",
	"CreateContainerConfigError": "Something that the container refers to is missing, usually a ConfigMap, a Secret or a key in one. The message names it.",
	"CreateContainerError":       "The container runtime cannot create the container. The message says why.",
	"RunContainerError":          "The container runtime cannot start the container, usually because of a wrong command. The message says why.",
}

// container is the status of one container of a pod.
type container struct {
	name, image string
	ready       bool
	// waiting is the reason why the container waits; empty when it does not wait, or has no reason.
	waiting, waitingMessage string
	// terminated is true when the container has ended and does not run.
	terminated bool
	// termination is the state of the container when it ended, now or the last time; nil when it has never ended.
	termination map[string]any
}

// containers reads a list of container statuses.
func (o *object) containers(path string) []container {
	statuses := o.children(o.status, path)
	containers := make([]container, len(statuses))
	for i, status := range statuses {
		state := childObject(status, "state")
		waiting, terminated := childObject(state, "waiting"), childObject(state, "terminated")
		containers[i] = container{
			name: stringValue(status["name"]), image: stringValue(status["image"]), ready: o.flag(status, path+".ready"),
			waiting: stringValue(waiting["reason"]), waitingMessage: stringValue(waiting["message"]),
			terminated: terminated != nil, termination: terminated,
		}
		if terminated == nil {
			containers[i].termination = childObject(childObject(status, "lastState"), "terminated")
		}
	}
	return containers
}

// succeeded reports whether the container has ended successfully.
func (c container) succeeded() bool {
	exitCode, ok := wholeNumber(c.termination["exitCode"])
	return c.terminated && ok && exitCode == 0
}

// describeNotReady returns a short description of the containers that are not ready, with the reasons. It skips containers that have succeeded.
func describeNotReady(containers []container) string {
	var text string
	for _, c := range containers {
		if !c.ready && !c.succeeded() && len(text) < maxMessage {
			text = join("; ", text, c.describe())
		}
	}
	return text
}

// describe returns a description of what is wrong with the container.
func (c container) describe() string {
	text := "container " + strconv.Quote(c.name) + ": "
	exit := c.describeEnd()
	switch {
	case c.waiting != "":
		text += c.waiting
		switch c.waiting {
		case "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			text = join(", ", text, c.waitingMessage) // It says what has to change, and stays the same from one retry to the next.
		default:
			if TerminalWaitingReasons[c.waiting] != "" && exit == "" {
				text = join(", image ", text, c.image)
			}
		}
	case c.terminated:
		return text + join(", ", "terminated", exit)
	default:
		text += "not ready"
	}
	if exit != "" {
		text += ", last " + exit
	}
	return text
}

// describeEnd describes how the container ended: "exit code 137 (OOMKilled): termination message".
func (c container) describeEnd() string {
	reason := stringValue(c.termination["reason"])
	text := reason
	if exitCode, ok := wholeNumber(c.termination["exitCode"]); ok {
		text = "exit code " + strconv.FormatInt(exitCode, 10)
		if reason != "" {
			text += " (" + reason + ")"
		}
	}
	return join(": ", text, terminationSummary(stringValue(c.termination["message"])))
}

// maxTerminationSummary is how many bytes of a termination message are shown, and maxTerminationLine how many bytes of one of its lines are read.
const (
	maxTerminationSummary = 120
	maxTerminationLine    = 512
)

// terminationSummary returns the last lines of a termination message that fit into one
// short line; of the very last as much as does. A container writes one to say
// why it ends, or, with FallbackToLogsOnError, it is the end of its log: there too the last line says most.
func terminationSummary(message string) string {
	var text string
	for message != "" && len(text) < maxTerminationSummary {
		end := strings.LastIndexByte(message, '\n')
		line := message[end+1:]
		message = message[:max(end, 0)]
		line = redactSecrets(healthscope.Cut(strings.TrimSpace(line), maxTerminationLine))
		if line == "" {
			continue
		}
		if text != "" && len(line)+1+len(text) > maxTerminationSummary {
			break
		}
		text = join(" ", line, text)
	}
	return healthscope.Cut(text, maxTerminationSummary)
}

// secretPattern matches text that looks like a secret in a log: the value after a name such as password, a bearer or basic token, and a password in a URL.
var secretPattern = regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key)[\w.-]*["']?\s*[=:]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;&]+)` +
	`|((?:bearer|basic)\s+)[\w.~+/=-]+|(://[^\s/:@]*:)[^\s/@]+(@)`)

// redactSecrets replaces text that looks like a secret. Messages go to the status, metrics and A&AI, where other people may read them.
func redactSecrets(text string) string {
	if !strings.ContainsAny(text, "=: ") {
		return text
	}
	return secretPattern.ReplaceAllString(text, "$1$2$3***$4")
}
