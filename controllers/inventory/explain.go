package inventory

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// explanations are, by reason, the first message that says why a scope is not synced.
type explanations map[scope.Reason]string

// addf adds an explanation. The first one for a reason stays: members come in a fixed order.
func (e explanations) addf(reason scope.Reason, format string, args ...any) {
	if _, ok := e[reason]; !ok {
		e[reason] = fmt.Sprintf(format, args...)
	}
}

// mostSevere returns the most severe reason with its message; both are empty when there is none.
func (e explanations) mostSevere() (reason scope.Reason, message string) {
	for _, reason := range reasonsBySeverity {
		if message, ok := e[reason]; ok {
			return reason, message
		}
	}
	return "", ""
}

// reasonsBySeverity are the reasons of the condition InventorySynced when it is not True, the most severe first.
var reasonsBySeverity = []scope.Reason{scope.ReasonMisconfigured, scope.ReasonUnavailable, scope.ReasonRefused, scope.ReasonPending, scope.ReasonNotListed, scope.ReasonNoRegion, scope.ReasonLinkDenied}

// reasonOf returns the reason of the condition for something that is not synced.
func reasonOf(o sync.ObjectStatus) scope.Reason {
	switch {
	case o.State == sync.Failed:
		return scope.ReasonRefused
	case o.Reason == sync.ReasonUnavailable:
		return scope.ReasonUnavailable
	default:
		return scope.ReasonPending
	}
}

// unsyncedMessage returns why an object is not synced.
func unsyncedMessage(o sync.ObjectStatus) string {
	if o.Message == "" { // It was added after the last pass began, or that pass ended before trying it.
		return "waits for its turn"
	}
	return o.Message
}

// newCondition returns the condition of a tenant, or of the modules of a VNF, after a pass that ended with an error or with nil.
func newCondition(err error, missing aai.Problem) condition {
	var e *aai.Error
	if !errors.As(err, &e) {
		e = &aai.Error{Kind: aai.Retry}
	}
	// An error may be about single resources, while A&AI is well otherwise.
	perResource := e.Kind == aai.Retry && e.Op != aai.OpList && e.Op != aai.OpProbe && !e.Outage()
	c := condition{problem: cmp.Or(e.Problem, missing)}
	switch {
	case err == nil || perResource:
		return c
	case e.Kind == aai.Misconfigured:
		c.reason, c.message = scope.ReasonMisconfigured, stableMessage(misconfiguration(e))+nextRetry(e)
	default:
		c.reason, c.message = scope.ReasonUnavailable, stableMessage(err.Error())+nextRetry(e)
	}
	c.problem = cmp.Or(c.problem, aai.ProblemOutage)
	return c
}

// nextRetry says when A&AI is asked again, in words that are the same until then.
func nextRetry(e *aai.Error) string {
	switch {
	case e.RetryAfter > time.Minute && !e.NotBefore.IsZero():
		return "; it is tried again at " + e.NotBefore.UTC().Format(time.RFC3339) + ", as A&AI asked"
	case e.RetryAfter > client.MaxPause || e.Kind == aai.Misconfigured:
		return fmt.Sprintf("; it is tried again within %.0f seconds", client.MaxMisconfiguredPause.Seconds())
	default:
		return fmt.Sprintf("; it is tried again within %.0f seconds", maxPause.Seconds())
	}
}

// remedies are what a person has to do about a problem with the configuration, in the words of the configuration file.
var remedies = map[aai.Problem]string{
	aai.ProblemCredentials: "correct the files inventory.usernameFile and inventory.passwordFile",
	aai.ProblemVersion:     "set inventory.schemaVersion to one that A&AI serves, or upgrade A&AI",
	aai.ProblemCertificate: "correct the files inventory.caFile, inventory.certFile and inventory.keyFile",
	aai.ProblemServer:      "set inventory.url to the scheme, host and port at which A&AI serves /aai",
}

// misconfiguration says what is wrong with the configuration, which is the same for all of A&AI, and what to do about it.
func misconfiguration(e *aai.Error) string {
	words := e.Message
	if e.Err != nil {
		words += ": " + e.Err.Error()
	}
	if remedy := remedies[e.Problem]; remedy != "" {
		words += "; " + remedy
	}
	return words
}

// The parts of an error text that stableMessage removes.
var (
	transactionPattern  = regexp.MustCompile(` \(transaction [^)]*\)`)
	requestPattern      = regexp.MustCompile(`cannot \w+ "/[^"]*": `)
	placePattern        = regexp.MustCompile(`^"/[^"]*" belongs`)
	localAddressPattern = regexp.MustCompile(`(read|write) (tcp|udp) \S+->`)
)

// stableMessage makes an error text fit for a condition: without what differs each time
// the same error comes, such as the request it came to, and without paths, which
// would fill all of its length. The log has them.
func stableMessage(text string) string {
	text = transactionPattern.ReplaceAllString(text, "")
	text = requestPattern.ReplaceAllString(text, "")
	text = placePattern.ReplaceAllString(text, "its place belongs")
	return localAddressPattern.ReplaceAllString(text, "$1 $2 ")
}
