package rules

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// TerminalWaitingReasons are the reasons for which a container waits that do not go away by waiting, with what to do about each, in Markdown for the
// documentation. Kubernetes tries again, but what has to change is outside of it.
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
	// terminated says that the container has ended and runs no more.
	terminated bool
	// end is how it ended, now or the last time.
	end end
}

// end is how a container ended; the zero value when it never did.
type end struct {
	// coded is true when the exit code is known.
	coded           bool
	code            int64
	reason, message string
}

// containers reads a list of container statuses.
func (o *object) containers(path string) []container {
	statuses := o.children(o.status, path)
	containers := make([]container, len(statuses))
	for i, status := range statuses {
		c := &containers[i]
		c.name, c.image = word(status["name"]), word(status["image"])
		c.ready = o.flag(status, path+".ready")
		state := child(status, "state")
		waiting := child(state, "waiting")
		c.waiting, c.waitingMessage = word(waiting["reason"]), word(waiting["message"])
		terminated := child(state, "terminated")
		c.terminated = terminated != nil
		if !c.terminated {
			terminated = child(child(status, "lastState"), "terminated")
		}
		c.end = end{reason: word(terminated["reason"]), message: word(terminated["message"])}
		c.end.code, c.end.coded = wholeNumber(terminated["exitCode"])
	}
	return containers
}

// done reports whether the container has ended well.
func (c *container) done() bool { return c.terminated && c.end.coded && c.end.code == 0 }

// describe says in a few words which containers are not ready, and why. One that has ended well is done.
func describe(containers []container) string {
	var text string
	for i := range containers {
		if c := &containers[i]; !c.ready && !c.done() && len(text) < maxMessage {
			text = join("; ", text, c.why())
		}
	}
	return text
}

// why says what is wrong with a container.
func (c *container) why() string {
	text := "container " + strconv.Quote(c.name) + ": "
	exit := c.end.text()
	switch {
	case c.waiting != "":
		text += c.waiting
		if TerminalWaitingReasons[c.waiting] != "" && exit == "" && !explained[c.waiting] {
			text = join(", image ", text, c.image)
		}
		if explained[c.waiting] {
			text = join(", ", text, c.waitingMessage)
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

// text puts the end of a container into words: "exit code 137 (OOMKilled): what the container said".
func (e end) text() string {
	text := e.reason
	if e.coded {
		text = "exit code " + strconv.FormatInt(e.code, 10)
		if e.reason != "" {
			text += " (" + e.reason + ")"
		}
	}
	return join(": ", text, lastWords(e.message))
}

// maxLastWords is how many bytes of a termination message are shown, and maxLine how many of one of its lines are looked at.
const (
	maxLastWords = 120
	maxLine      = 512
)

// lastWords returns the last lines of a termination message that fit into one
// short line; of the very last as much as does. A container writes one to say
// why it ends, or, with FallbackToLogsOnError, it is the end of its log: there too the last line says most.
func lastWords(message string) string {
	var text string
	for message != "" && len(text) < maxLastWords {
		end := strings.LastIndexByte(message, '\n')
		line := message[end+1:]
		message = message[:max(end, 0)]
		line = withoutSecrets(healthscope.Cut(strings.TrimSpace(line), maxLine))
		if line == "" {
			continue
		}
		if text != "" && len(line)+1+len(text) > maxLastWords {
			break
		}
		text = join(" ", line, text)
	}
	return healthscope.Cut(text, maxLastWords)
}

// secrets finds what looks like a secret in a log: a value behind a telling name, a bearer or basic token, and a password in a URL.
var secrets = regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key)[\w.-]*["']?\s*[=:]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;&]+)` +
	`|((?:bearer|basic)\s+)[\w.~+/=-]+|(://[^\s/:@]*:)[^\s/@]+(@)`)

// withoutSecrets replaces what looks like a secret. Messages travel to status, metrics and A&AI, where others may read them.
func withoutSecrets(text string) string {
	if !strings.ContainsAny(text, "=: ") {
		return text
	}
	return secrets.ReplaceAllString(text, "$1$2$3***$4")
}
