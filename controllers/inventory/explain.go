package inventory

import (
	"fmt"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// Reasons of the condition InventorySynced when it is not True, the gravest first.
const (
	// ReasonMisconfigured means that A&AI refuses this installation: user, password or schema version are wrong.
	ReasonMisconfigured = "Misconfigured"
	// ReasonUnavailable means that A&AI cannot be reached, or answers with errors that pass.
	ReasonUnavailable = "Unavailable"
	// ReasonRefused means that A&AI refused resources for good.
	ReasonRefused = "Refused"
	// ReasonPending means that resources wait to be written, or for what they depend on to appear in A&AI.
	ReasonPending = "Pending"
	// ReasonNotListed means that bundles of the scope are too large to name all of their resources. What A&AI has of the others may be old.
	ReasonNotListed = "NotListed"
	// ReasonNoRegion means that the configuration names no place in A&AI for resources of the scope.
	ReasonNoRegion = "NoRegion"
	// ReasonLinkDenied means that the scope names a VNF that the configuration does not let its namespace link to. Its resources are written without the link.
	ReasonLinkDenied = "LinkDenied"
)

// gravity is the order of the reasons.
var gravity = []string{ReasonMisconfigured, ReasonUnavailable, ReasonRefused, ReasonPending, ReasonNotListed, ReasonNoRegion, ReasonLinkDenied}

// explanations are, by reason, the first words for why a scope is not in step.
type explanations map[string]string

// addf adds an explanation. The first one for a reason stays: members come in a fixed order.
func (e explanations) addf(reason, format string, args ...any) {
	if _, ok := e[reason]; !ok {
		e[reason] = fmt.Sprintf(format, args...)
	}
}

// gravest returns the gravest reason with its words; both are empty when there is none.
func (e explanations) gravest() (reason, message string) {
	for _, reason := range gravity {
		if message, ok := e[reason]; ok {
			return reason, message
		}
	}
	return "", ""
}

// addObject explains why a member is not synced.
func (e explanations) addObject(p scope.Placed, tenant aai.Tenant, o sync.Object) {
	e.addf(reasonOf(o), "%s in tenant %q: %s", p.Key, tenant, waiting(o))
}

// reasonOf returns the reason of the condition for something that is not synced.
func reasonOf(o sync.Object) string {
	switch {
	case o.State == sync.Failed:
		return ReasonRefused
	case o.Reason == sync.ReasonUnavailable:
		return ReasonUnavailable
	default:
		return ReasonPending
	}
}

// trouble returns reason and words for an error of a pass that concerns all of a tenant; both are empty when there is none.
func trouble(err error) (reason, message string) {
	switch {
	case err == nil || ofSingleResources(err):
		return "", ""
	case aai.KindOf(err) == aai.Stop:
		return ReasonMisconfigured, misconfiguration(err)
	default:
		return ReasonUnavailable, plain(err.Error())
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
func misconfiguration(err error) string {
	var e *aai.Error
	if !errors.As(err, &e) {
		return plain(err.Error())
	}
	words := e.Message
	if e.Err != nil {
		words += ": " + e.Err.Error()
	}
	if remedy := remedies[e.Problem]; remedy != "" {
		words += "; " + remedy
	}
	return plain(words)
}

// problemOf says in one word what is the matter after a pass; empty when nothing is that a person has to know of.
func problemOf(err error, tenantMissing bool) aai.Problem {
	var e *aai.Error
	switch {
	case errors.As(err, &e) && e.Problem != "":
		return e.Problem
	case tenantMissing:
		return aai.ProblemTenant
	case err == nil || ofSingleResources(err):
		return ""
	default:
		return aai.ProblemOutage
	}
}

// What plain takes out of an error text, and what it puts in its place.
var (
	transaction = regexp.MustCompile(` \(transaction [^)]*\)`)
	request     = regexp.MustCompile(`cannot \w+ "/[^"]*": `)
	place       = regexp.MustCompile(`^"/[^"]*" belongs`)
	localEnd    = regexp.MustCompile(`(read|write) (tcp|udp) \S+->`)
)

// plain makes an error text fit for a condition: without what differs each time
// the same error comes, such as the request it came to, and without paths, which
// would fill all of its length. The log has them.
func plain(text string) string {
	text = transaction.ReplaceAllString(text, "")
	text = request.ReplaceAllString(text, "")
	text = place.ReplaceAllString(text, "its place belongs")
	return localEnd.ReplaceAllString(text, "$1 $2 ")
}
