package aai

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrorKind says how to handle an error of A&AI. The HTTP status is not enough to decide: A&AI answers 400 for a timeout, for a blocked delete and for a malformed request.
type ErrorKind string

// The kinds of errors.
const (
	// Retry means: try again later, with backoff. A&AI or the network fails temporarily. The caller does not know whether a write was done.
	Retry ErrorKind = "Retry"
	// Conflict means: another writer has changed the object. Read it and decide again.
	Conflict ErrorKind = "Conflict"
	// MissingDependency means: an object that must exist first does not exist. Wait until it does.
	MissingDependency ErrorKind = "MissingDependency"
	// Misconfigured means: the configuration is wrong, for instance the password or the schema version. Every request fails.
	Misconfigured ErrorKind = "Misconfigured"
	// Rejected means: A&AI never accepts this request. Other objects are not affected.
	Rejected ErrorKind = "Rejected"
)

// Op is an operation on A&AI, as it appears in errors and metrics.
type Op string

// The operations.
const (
	// OpProbe checks whether A&AI serves this client.
	OpProbe Op = "probe"
	// OpList reads a page of a tenant's k8s-resources.
	OpList Op = "list"
	// OpGet reads one k8s-resource.
	OpGet Op = "get"
	// OpPut creates a k8s-resource.
	OpPut Op = "put"
	// OpUpdate changes a k8s-resource.
	OpUpdate Op = "update"
	// OpDelete deletes a k8s-resource.
	OpDelete Op = "delete"
	// OpRelate adds a relationship.
	OpRelate Op = "relate"
	// OpUnrelate removes a relationship.
	OpUnrelate Op = "unrelate"
	// OpBulk does several of these writes in one transaction: OpPut, OpUpdate, OpDelete, OpRelate and OpUnrelate.
	OpBulk Op = "bulk"
	// OpTenant checks whether a tenant exists.
	OpTenant Op = "tenant"
	// OpTarget checks whether the target of a relationship exists.
	OpTarget Op = "target"
	// OpModules reads the vf-modules of a VNF.
	OpModules Op = "modules"
	// OpStatus writes the operational-status of a vf-module.
	OpStatus Op = "status"
)

// verb returns the verb of an operation for error messages.
func (o Op) verb() string {
	switch o {
	case OpTenant, OpTarget:
		return string(OpGet)
	case OpModules:
		return string(OpList)
	case OpStatus:
		return "patch"
	case OpProbe, OpList, OpGet, OpPut, OpUpdate, OpDelete, OpRelate, OpUnrelate, OpBulk:
	}
	return string(o)
}

// Codes of A&AI errors that several packages use.
const (
	// CodeNodeNotFound is the code for an object that does not exist, or whose parent does not exist.
	CodeNodeNotFound = "ERR.5.4.6114"
	// CodeTargetNotFound is the code for a relationship to an object that does not exist.
	CodeTargetNotFound = "ERR.5.4.6129"
	// CodePayloadLimit is the code for a bulk request with more operations than the server accepts.
	CodePayloadLimit = "ERR.5.4.6147"
)

// Problem names what an operator has to repair, in one word that can be the value of a metric label.
type Problem string

// The problems.
const (
	// ProblemCredentials means that A&AI refuses the user and password, or that the client cannot read them.
	ProblemCredentials Problem = "credentials"
	// ProblemVersion means that A&AI does not serve the schema version, or that the version has no k8s-resource.
	ProblemVersion Problem = "version"
	// ProblemCertificate means that the client does not trust A&AI's certificate, or that the client certificate cannot be used.
	ProblemCertificate Problem = "certificate"
	// ProblemServer means that the server that answers is not A&AI, or that it refuses all requests.
	ProblemServer Problem = "server"
	// ProblemOutage means that A&AI cannot be reached, that it answers with temporary errors, or that another server answers in its place.
	ProblemOutage Problem = "outage"
	// ProblemTenant means that a tenant does not exist in A&AI, perhaps because the region or tenant is misspelt in the configuration.
	ProblemTenant Problem = "tenant"
	// ProblemVNF means that a VNF or one of its modules does not exist in A&AI, perhaps because it is misspelt in a scope.
	ProblemVNF Problem = "vnf"
	// ProblemRegion means that the configuration has no region for resources that should be written to A&AI.
	ProblemRegion Problem = "region"
)

// Error describes a request that A&AI refused, or that got no valid answer.
type Error struct {
	// Op is the operation.
	Op Op
	// URI is the path of the request, below /aai/vN.
	URI string
	// Status is the HTTP status; zero when there was no answer.
	Status int
	// Code is A&AI's error code, such as ERR.5.4.6114; empty when the answer had none.
	Code string
	// MessageID is A&AI's message id, such as SVC3001; empty when the answer had none.
	MessageID string
	// Message says what is wrong. It is A&AI's message if there is one.
	Message string
	// Kind says how to handle the error.
	Kind ErrorKind
	// Problem is what an operator has to repair; set when Kind is Misconfigured, and by package sync when a tenant or a VNF is missing.
	Problem Problem
	// RetryAfter is how long A&AI asked the client to wait; zero when it did not ask.
	RetryAfter time.Duration
	// NotSent is true when the client did not send the request: the circuit breaker is open, in which case the other fields describe the error that opened it; the rate limit would be exceeded; or the process must not write.
	NotSent bool
	// NotBefore is the time at which the client sends requests to A&AI again; zero when there is no reason to wait.
	NotBefore time.Time
	// TransactionID is the X-TransactionId of the request, which also appears in A&AI's logs; empty when the request was not sent.
	TransactionID string
	// Err is the cause when there was no answer; otherwise nil.
	Err error
}

// Error returns the operation, the answer and the transaction id as text.
func (e *Error) Error() string {
	var known []string
	if e.Status != 0 {
		known = append(known, "status "+strconv.Itoa(e.Status))
	}
	for _, word := range []string{e.MessageID, e.Code} {
		if word != "" {
			known = append(known, word)
		}
	}
	parts := []string{fmt.Sprintf("cannot %s %q", e.Op.verb(), e.URI), strings.Join(known, " "), e.Message}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
	if e.TransactionID != "" {
		text += " (transaction " + e.TransactionID + ")"
	}
	return text
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Outage reports whether the error affects A&AI as a whole or the network to it, so that any other request would fail too.
func (e *Error) Outage() bool {
	if e.Kind != Retry {
		return false
	}
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.RetryAfter > 0 || e.Status/100 == 2 // A success with a response that A&AI does not send.
}

// KindOf returns the kind of the first *Error in err's tree. It returns Retry if there is none, because such an error did not come from A&AI.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Retry
}

// NotSent reports whether the first *Error in err's tree is about a request that the client did not send.
func NotSent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.NotSent
}
