package probe

import (
	"bytes"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MaxBody is how much of an answer is read.
const MaxBody = 10 << 10

// Accept is the header by which an answer of the API server itself is known from one of the target: the former chooses the
// first, and a target, which does not know it, has the other.
const (
	Accept      = contentType + ", */*;q=0.9"
	contentType = "application/vnd.kubernetes.protobuf"
)

// Kind says what a probe has come to.
type Kind int

// The kinds of outcomes.
const (
	// Success is an answer of the target that says that it is well.
	Success Kind = iota
	// Failure is any other answer of the target, or that it gives none.
	Failure
	// NoWay means that the API server says that the target was not asked.
	NoWay
	// Silent means that the API server gives no answer, so that nothing is known of the target.
	Silent
)

// Outcome is what a probe has come to.
type Outcome struct {
	Kind Kind
	// Cause says why it is no Success: a status code or a class of errors. It holds nothing that the target has chosen.
	Cause string
}

// TimedOut returns the outcome of a probe without an answer in time.
func TimedOut() Outcome { return Outcome{Failure, "timeout"} }

// BrokenOff returns the outcome of a probe whose answer does not end well.
func BrokenOff() Outcome { return Outcome{Failure, "the answer breaks off"} }

// Unanswered returns the outcome of a probe whose API server does not answer.
func Unanswered() Outcome { return Outcome{Silent, "the API server gives no answer"} }

// Judge returns what an answer says. The body is read only where it is of the API server.
func Judge(code int, mediaType string, body []byte) Outcome {
	switch own := mediaType == contentType; {
	case code >= 200 && code < 400:
		return Outcome{Kind: Success}
	case own:
		return judgeStatus(code, statusOf(body))
	}
	return Outcome{Failure, fmt.Sprintf("status code %d", code)}
}

// statusOf returns the status in an answer of the API server; an empty one when there is none, as with HEAD.
func statusOf(body []byte) (s metav1.Status) {
	var envelope runtime.Unknown
	data, found := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !found || envelope.Unmarshal(data) != nil || s.Unmarshal(envelope.Raw) != nil {
		return metav1.Status{}
	}
	return s
}

// What the API server says when the target was asked.
const (
	notReached  = "error trying to reach service: "
	badRedirect = "error trying to parse Location header: "
)

// judgeStatus returns what an answer of the API server itself says.
func judgeStatus(code int, s metav1.Status) Outcome {
	reached, asked := strings.CutPrefix(s.Message, notReached)
	switch {
	case asked:
		return Outcome{Failure, class(reached)}
	case strings.Contains(s.Message, badRedirect):
		return Outcome{Failure, "malformed redirect"}
	case code == 403:
		return Outcome{NoWay, "the controller may not get services/proxy"}
	case code == 404:
		return Outcome{NoWay, "the API server does not find the Service"}
	case code == 503 && s.Message == "":
		return Outcome{NoWay, "it has no ready endpoint, or none that can be reached"}
	case code == 503:
		return Outcome{NoWay, "it has no ready endpoint that is a pod of its namespace"}
	}
	return Outcome{NoWay, fmt.Sprintf("the API server answers with status code %d", code)}
}

// classes are the errors that are distinguished, by what Go says of them.
var classes = []struct{ text, class string }{
	{"connection refused", "connection refused"},
	{"connection reset", "connection reset"},
	{"no route to host", "no route to host"},
	{"network is unreachable", "network unreachable"},
	{"timeout", "timeout"},
	{"deadline exceeded", "timeout"},
	{"EOF", "connection closed without an answer"},
	{"server gave HTTP response to HTTPS client", "no TLS"},
	{"first record does not look like a TLS handshake", "no TLS"},
	{"tls: ", "TLS failed"},
	{"malformed HTTP", "malformed answer"},
}

// class returns the class of an error. The error itself may hold what the target has sent.
func class(text string) string {
	for _, c := range classes {
		if strings.Contains(text, c.text) {
			return c.class
		}
	}
	return "no connection"
}
