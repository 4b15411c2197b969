package probe

import (
	"bytes"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MaxBody is the number of bytes of a response body that are read.
const MaxBody = 10 << 10

// Accept is the header that distinguishes a response of the API server itself from a response of the target: the API server
// chooses the first media type, and a target does not know it and uses another.
const (
	Accept      = contentType + ", */*;q=0.9"
	contentType = "application/vnd.kubernetes.protobuf"
)

// Kind is the kind of an Outcome.
type Kind int

// The kinds of outcomes.
const (
	// Success means that the target responds with a status code from 200 to 399.
	Success Kind = iota
	// Failure means that the target responds with another status code, or does not respond.
	Failure
	// NotProxied means that the API server reports that it did not send the request to the target.
	NotProxied
	// Silent means that the API server does not respond, so that nothing is known of the target.
	Silent
)

// Outcome is the outcome of one probe.
type Outcome struct {
	Kind Kind
	// Cause says why Kind is not Success: a status code or a class of errors. It never contains text that the target has sent.
	Cause string
}

// TimedOut returns the outcome of a probe without a response within the timeout.
func TimedOut() Outcome { return Outcome{Failure, "timeout"} }

// BodyTruncated returns the outcome of a probe whose response body cannot be read to its end.
func BodyTruncated() Outcome { return Outcome{Failure, "the answer breaks off"} }

// Unanswered returns the outcome of a probe when the API server does not respond.
func Unanswered() Outcome { return Outcome{Silent, "the API server gives no answer"} }

// Judge returns the outcome that a response stands for. It reads the body only when the API server itself has sent it.
func Judge(code int, mediaType string, body []byte) Outcome {
	switch fromAPIServer := mediaType == contentType; {
	case code >= 200 && code < 400:
		return Outcome{Kind: Success}
	case fromAPIServer:
		return outcomeOfStatus(code, decodeStatus(body))
	}
	return Outcome{Failure, fmt.Sprintf("status code %d", code)}
}

// decodeStatus returns the Status in a response of the API server. It is empty when there is none, as with HEAD.
func decodeStatus(body []byte) (s metav1.Status) {
	var envelope runtime.Unknown
	data, found := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !found || envelope.Unmarshal(data) != nil || s.Unmarshal(envelope.Raw) != nil {
		return metav1.Status{}
	}
	return s
}

// Prefixes of the messages of the API server for requests that it did send to the target.
const (
	notReached  = "error trying to reach service: "
	badRedirect = "error trying to parse Location header: "
)

// outcomeOfStatus returns the outcome that a response of the API server itself stands for.
func outcomeOfStatus(code int, s metav1.Status) Outcome {
	cause, targetAsked := strings.CutPrefix(s.Message, notReached)
	switch {
	case targetAsked:
		return Outcome{Failure, errorClass(cause)}
	case strings.Contains(s.Message, badRedirect):
		return Outcome{Failure, "malformed redirect"}
	case code == 403:
		return Outcome{NotProxied, "the controller may not get services/proxy"}
	case code == 404:
		return Outcome{NotProxied, "the API server does not find the Service"}
	case code == 503 && s.Message == "":
		return Outcome{NotProxied, "it has no ready endpoint, or none that can be reached"}
	case code == 503:
		return Outcome{NotProxied, "it has no ready endpoint that is a pod of its namespace"}
	}
	return Outcome{NotProxied, fmt.Sprintf("the API server answers with status code %d", code)}
}

// errorClasses map texts of Go's network errors to the classes that are distinguished.
var errorClasses = []struct{ text, class string }{
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

// errorClass returns the class of an error. The text itself is not passed on, because it may contain what the target has sent.
func errorClass(text string) string {
	for _, c := range errorClasses {
		if strings.Contains(text, c.text) {
			return c.class
		}
	}
	return "no connection"
}
