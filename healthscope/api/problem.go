package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// Problem is the body of an error response: a problem document, `application/problem+json`, as in RFC 9457.
type Problem struct {
	// Type is always `about:blank`. `status` is the kind of the error, and `detail` describes it.
	Type string `enum:"about:blank" json:"type"`
	// Title is the reason phrase of `status`.
	Title string `json:"title"`
	// Status is the HTTP status code.
	Status int `json:"status" maximum:"599" minimum:"400"`
	// Detail describes the error for people, and how to correct it where that is known.
	Detail string `json:"detail" minLength:"1"`
	// Instance is the path of the request. A path longer than 200 bytes is cut.
	Instance string `format:"uri-reference" json:"instance"`
	// Reason is the reason why the current state of scopes is not known, in one CamelCase word. Absent for other errors.
	Reason string `json:"reason,omitempty" pattern:"^[A-Z][A-Za-z]*$"`
	// LastSeen is the last time at which the state of scopes was known to be current. Absent if it never was, and for other errors.
	LastSeen time.Time `json:"lastSeen,omitzero"`
}

// OutageError is the error of Options.Current. The response is 503 with all its fields.
type OutageError struct {
	// Reason is the reason why the current state of scopes is not known.
	Reason healthscope.Reason
	// Message describes the reason for people.
	Message string
	// LastSeen is when the state was last current. It may be zero.
	LastSeen time.Time
}

// Error returns the message with the time.
func (o *OutageError) Error() string {
	if o.LastSeen.IsZero() {
		return o.Message
	}
	return o.Message + "; it was known last at " + o.LastSeen.UTC().Format(time.RFC3339)
}

// statusError is an error with a status code. Its text is for the caller.
type statusError struct {
	status int
	err    error
}

func (f *statusError) Error() string { return f.err.Error() }

func (f *statusError) Unwrap() error { return f.err }

func statusErrorf(status int, format string, args ...any) error {
	return &statusError{status: status, err: fmt.Errorf(format, args...)}
}

// problemOf returns the document of an error. The text of an error without a status code is not shown to the caller.
func problemOf(err error, u *url.URL) Problem {
	p := Problem{Type: "about:blank", Status: http.StatusInternalServerError, Detail: "the server failed while it made the answer; its log says how", Instance: instance(u)}
	if f, ok := errors.AsType[*statusError](err); ok {
		p.Status, p.Detail = f.status, f.Error()
	}
	if o, ok := errors.AsType[*OutageError](err); ok {
		p.Reason, p.LastSeen = string(o.Reason), o.LastSeen.UTC().Truncate(time.Second)
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// instance returns the path of a URL as a reference to it.
func instance(u *url.URL) string {
	ref := url.URL{Path: u.Path, RawPath: u.RawPath}
	if len(u.Path) > maxEcho {
		ref = url.URL{Path: shorten(u.Path)}
	}
	return ref.String()
}
