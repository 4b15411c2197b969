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

// ErrorKind says what to do about an error of A&AI. The HTTP status alone cannot say it: a timeout is 400 there, and so are a blocked delete and a typing error.
type ErrorKind string

// The kinds of errors.
const (
	// Retry means: try again later, with backoff. A&AI or the network is in trouble; it is not known whether a write was done.
	Retry ErrorKind = "Retry"
	// Conflict means: another writer has changed the object. Read it, then decide again.
	Conflict ErrorKind = "Conflict"
	// MissingDependency means: something that must exist first does not. Wait until it does.
	MissingDependency ErrorKind = "MissingDependency"
	// Misconfigured means: the configuration is wrong, such as the password or the schema version. Every request will fail.
	Misconfigured ErrorKind = "Misconfigured"
	// Rejected means: A&AI will never accept this request. Other objects are not affected.
	Rejected ErrorKind = "Rejected"
)

// Op is an operation on A&AI, as it appears in errors and metrics.
type Op string

// The operations.
const (
	// OpProbe asks whether A&AI serves us.
	OpProbe Op = "probe"
	// OpList reads a page of a tenant's k8s-resources.
	OpList Op = "list"
	// OpGet reads one k8s-resource.
	OpGet Op = "get"
	// OpPut creates a k8s-resource.
	OpPut Op = "put"
	// OpUpdate changes one.
	OpUpdate Op = "update"
	// OpDelete deletes one.
	OpDelete Op = "delete"
	// OpRelate adds a relationship.
	OpRelate Op = "relate"
	// OpUnrelate removes one.
	OpUnrelate Op = "unrelate"
	// OpBulk does several of the writes above in one transaction.
	OpBulk Op = "bulk"
	// OpTenant asks whether a tenant exists.
	OpTenant Op = "tenant"
	// OpTarget asks whether the target of a relationship exists.
	OpTarget Op = "target"
	// OpModules reads the vf-modules of a VNF.
	OpModules Op = "modules"
	// OpStatus writes the operational-status of a vf-module.
	OpStatus Op = "status"
)

// verb returns the verb of an operation for error texts.
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

// Codes of A&AI errors that more than one package knows by name.
const (
	// CodeNodeNotFound is the code for an object that does not exist, or whose parent does not.
	CodeNodeNotFound = "ERR.5.4.6114"
	// CodeTargetNotFound is the code for a relationship to an object that does not exist.
	CodeTargetNotFound = "ERR.5.4.6129"
	// CodePayloadLimit is the code for a bulk request with more operations than the server takes.
	CodePayloadLimit = "ERR.5.4.6147"
)

// Problem names what a person has to repair, in one word that can be a label of a metric.
type Problem string

// The problems.
const (
	// ProblemCredentials means that A&AI refuses user and password, or that they cannot be read.
	ProblemCredentials Problem = "credentials"
	// ProblemVersion means that A&AI does not serve the schema version, or that the version has no k8s-resource.
	ProblemVersion Problem = "version"
	// ProblemCertificate means that A&AI's certificate is not trusted, or that our own certificate cannot be used.
	ProblemCertificate Problem = "certificate"
	// ProblemServer means that what answers is no A&AI, or refuses requests as such.
	ProblemServer Problem = "server"
	// ProblemOutage means that A&AI cannot be reached, answers with errors that pass, or something else answers in its place.
	ProblemOutage Problem = "outage"
	// ProblemTenant means that a tenant does not exist in A&AI, perhaps because region or tenant are misspelt in the configuration.
	ProblemTenant Problem = "tenant"
	// ProblemVNF means that a VNF or a module of it does not exist in A&AI, perhaps because it is misspelt in a scope.
	ProblemVNF Problem = "vnf"
	// ProblemRegion means that the configuration names no place in A&AI for resources that are to go there.
	ProblemRegion Problem = "region"
)

// Error is a request that A&AI refused, or that got no answer it can have meant.
type Error struct {
	// Op is what was asked.
	Op Op
	// URI is the path it was asked of, below /aai/vN.
	URI string
	// Status is the HTTP status; zero when there was no answer.
	Status int
	// Code is A&AI's error code, such as ERR.5.4.6114; empty when the answer had none.
	Code string
	// MessageID is A&AI's message id, such as SVC3001; empty when the answer had none.
	MessageID string
	// Message says what is wrong, in A&AI's words if it gave any.
	Message string
	// Kind is what to do about it.
	Kind ErrorKind
	// Problem is what a person has to repair; set when Kind is Misconfigured.
	Problem Problem
	// RetryAfter is how long A&AI asked to be left alone; zero when it did not ask.
	RetryAfter time.Duration
	// NotSent is true when the request was not sent: the client leaves A&AI alone for what an earlier request was answered, which the other fields describe, or there would be too many requests in a second.
	NotSent bool
	// NotBefore is when the client asks A&AI again; zero when there is no reason to wait.
	NotBefore time.Time
	// TransactionID is the X-TransactionId of the request, by which A&AI's own logs know it; empty when it was not sent.
	TransactionID string
	// Err is the cause when there was no answer; otherwise nil.
	Err error
}

// Error says what was asked, what came back, and the transaction id.
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

// Outage reports whether the error concerns A&AI as a whole, or the network to it, so that any other request would fail now.
func (e *Error) Outage() bool {
	if e.Kind != Retry {
		return false
	}
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.RetryAfter > 0 || e.Status/100 == 2 // A success that is not as A&AI answers.
}

// KindOf returns the kind of the first *Error in err's tree. An error that holds none did not come from A&AI and is Retry.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Retry
}
