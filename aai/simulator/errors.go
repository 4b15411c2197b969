package simulator

import (
	"fmt"
	"net/http"
	"strings"
)

// errorSpec is the fixed part of an error, with the values of aai-resources' error.properties.
type errorSpec struct {
	status  int
	id      string // messageId
	text    string // with placeholders %1, %2 and so on
	message string // empty if it is the text
	ec      string
}

const (
	invalidText  = "Invalid input performing %1 on %2"
	notFoundText = "Resource not found for %1 using id %2"
	versionText  = "Request uri is not valid, please check the version %1"
	writingText  = "Error writing output performing %1 on %2"
	noTargetText = "Failed to make edge to missing target node of type %3 with keys %4 performing %1 on %2"
)

// errorSpecs holds the errors by A&AI's own code. A fault rule can name the code.
var errorSpecs = map[string]*errorSpec{}

func define(code string, status int, id, text, message, ec string) *errorSpec {
	spec := &errorSpec{status, id, text, message, ec}
	errorSpecs[code] = spec
	return spec
}

var (
	errInvalidInput     = define("AAI_3000", 400, "SVC3000", invalidText, "", "ERR.5.2.3000")
	errBadNesting       = define("AAI_3001", 404, "SVC3001", notFoundText, "", "ERR.5.6.3001")
	errRetiredVersion   = define("AAI_3007", 410, "SVC3007", "This version (%1) of the API is retired, please migrate to %2", "", "ERR.5.6.3007")
	errBadEncoding      = define("AAI_3008", 400, "SVC3008", "URI is not encoded in UTF-8", "", "ERR.5.6.3008")
	errUnknownFunction  = define("AAI_3012", 400, "SVC3012", "Unrecognized AAI function", "", "ERR.5.6.3012")
	errVersionNotServed = define("AAI_3016", 400, "SVC3016", versionText, "", "ERR.5.6.3007")
	errNoVersion        = define("AAI_3017", 400, "SVC3016", versionText, "Request uri is not valid, please check the uri %1", "ERR.5.6.3007")
	errNoPayload        = define("AAI_3102", 400, "POL3102", "Error parsing input performing %1 on %2", "", "ERR.5.1.3102")
	errUnauthorized     = define("AAI_3300", 403, "POL3300", "Unauthorized", "", "ERR.5.1.3300")
	errInternal         = define("AAI_4000", 500, "SVC3002", writingText, "Internal Error", "ERR.5.4.4000")
	errNoAppID          = define("AAI_4009", 400, "SVC3000", invalidText, "Invalid X-FromAppId in header", "4.0.4009")
	errNoTransactionID  = define("AAI_4010", 400, "SVC3000", invalidText, "Invalid X-TransactionId in header", "4.0.4010")
	errBadDepth         = define("AAI_4016", 400, "SVC3000", invalidText, `The depth parameter must be a number or the string "all"`, "4.0.4016")
	errNoEdgeRule       = define("AAI_6107", 400, "SVC3000", invalidText, "Required Edge-property not found in input data", "ERR.5.4.6107")
	errDeleteBlocked    = define("AAI_6110", 400, "SVC3100", "Unsupported operation %1", "Node cannot be deleted", "ERR.5.4.6110")
	errBadEnvelope      = define("AAI_6111", 400, "SVC3000", invalidText, "JSON processing error", "ERR.5.4.6111")
	errNodeNotFound     = define("AAI_6114", 404, "SVC3001", notFoundText, "Node Not Found", "ERR.5.4.6114")
	errFieldMissing     = define("AAI_6118", 400, "SVC3000", invalidText, "Required Field not passed.", "ERR.5.4.6118")
	errBadParameter     = define("AAI_6120", 400, "SVC3000", invalidText, "Bad Parameter Passed", "ERR.5.4.6120")
	errTargetNotFound   = define("AAI_6129", 404, "SVC3003", noTargetText, "Error making edge to target node", "ERR.5.4.6129")
	errVersionRequired  = define("AAI_6130", 412, "SVC3000", invalidText, "Precondition Required", "ERR.5.4.6130")
	errVersionMismatch  = define("AAI_6131", 412, "SVC3000", invalidText, "Precondition Failed", "ERR.5.4.6131")
	errVersionOnCreate  = define("AAI_6135", 412, "SVC3000", invalidText, "Resource version specified on create", "ERR.5.4.6135")
	errMultiplicity     = define("AAI_6140", 400, "SVC3000", invalidText, "Edge multiplicity violated", "ERR.5.4.6140")
	errContainmentEdge  = define("AAI_6145", 400, "SVC3000", invalidText, "Cannot create a nested/containment edge via relationship", "ERR.5.4.6145")
	errPayloadLimit     = define("AAI_6147", 400, "SVC3000", invalidText, "Payload Limit Reached, reduce payload", "ERR.5.4.6147")
	errNoRelationship   = define("AAI_6149", 404, "SVC3000", invalidText, "No relationship was found", "ERR.5.4.6149")
	errImplicitDelete   = define("AAI_9109", 403, "SVC3300", "Unauthorized", "User is not allowed to perform implicit delete", "ERR.5.0.9109")

	// Only fault rules answer these.
	_ = define("AAI_5105", 500, "SVC3002", writingText, "Unexpected error reading/updating database", "ERR.5.4.5105")
	_ = define("AAI_6134", 500, "SVC6134", "Could not persist transaction to storage back end. Exhausted retry amount", "", "ERR.5.4.6134")
	_ = define("AAI_6137", 400, "SVC3000", invalidText, "Cannot perform writes on multiple vertices", "ERR.5.4.6137")
	_ = define("AAI_6138", 400, "SVC3000", invalidText, "Cannot delete multiple vertices", "ERR.5.4.6138")
	_ = define("AAI_6142", 400, "SVC3000", invalidText, "Retrying transaction", "ERR.5.4.6142")
	_ = define("AAI_7406", 400, "SVC7406", "Request Timed Out", "", "ERR.5.4.7406")
)

// placeholders returns the number of placeholders in the text. In the variables, the message and the ec follow their values, and
// then the variables that have no placeholder.
func (s *errorSpec) placeholders() int { return strings.Count(s.text, "%") }

// apiError is the error for a rejected request.
type apiError struct {
	*errorSpec

	detail     string   // follows the message after a colon, if any
	verb, path string   // of the request; both empty when A&AI omits them
	extras     []string // variables after verb and path
	page       int      // status of an error page of the servlet container that replaces the error; 0 for none
	crash      bool     // a null dereference inside A&AI, which bulk requests do not catch
}

func newAPIError(spec *errorSpec, format string, args ...any) *apiError {
	return &apiError{errorSpec: spec, detail: fmt.Sprintf(format, args...)}
}

// containerPage returns an error that the servlet container answers, without A&AI's body.
func containerPage(status int) *apiError { return &apiError{page: status} }

// crashError returns the error for a document that makes A&AI's unmarshaller crash.
func crashError() *apiError { return &apiError{errorSpec: errInternal, crash: true} }

// forRequest sets the request that the error belongs to, unless a caller closer to the cause has set it.
func (e *apiError) forRequest(verb, path string) *apiError {
	if e.verb == "" {
		e.verb, e.path = verb, unescaped(path)
	}
	return e
}

func (e *apiError) withVariables(extras ...string) *apiError {
	e.extras = extras
	return e
}

func (e *apiError) fullMessage() string {
	message := e.message
	if message == "" {
		message = e.text
	}
	if e.detail != "" {
		message += ":" + e.detail
	}
	return message
}

// Error implements error, for callers in the same process.
func (e *apiError) Error() string {
	return fmt.Sprintf("status %d, %s: %s", e.status, e.ec, e.fullMessage())
}

// variables returns the list of variables in the error body.
func (e *apiError) variables() []string {
	var all []string
	if e.verb != "" {
		all = append(all, e.verb, e.path)
	}
	all = append(all, e.extras...)
	for len(all) < e.placeholders() {
		all = append(all, "null")
	}
	vars := append([]string{}, all[:e.placeholders()]...)
	vars = append(vars, e.fullMessage(), e.ec)
	return append(vars, all[e.placeholders():]...)
}

// reply returns the answer to the rejected request.
func (e *apiError) reply() reply {
	if e.page != 0 {
		return statusPage(e.page)
	}
	exception := "serviceException"
	if strings.HasPrefix(e.id, "POL") {
		exception = "policyException"
	}
	text := fmt.Sprintf("%s (msg=%%%d) (ec=%%%d)", e.text, e.placeholders()+1, e.placeholders()+2)
	return jsonReply(e.status, object{{"requestError", object{{exception, object{
		{"messageId", e.id}, {"text", text}, {"variables", e.variables()},
	}}}}})
}

// statusPage returns an answer of A&AI's servlet container, or of a proxy in front of it.
func statusPage(status int) reply {
	text := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", status, http.StatusText(status))
	return reply{status: status, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(text)}
}
