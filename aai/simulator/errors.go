package simulator

import (
	"fmt"
	"net/url"
	"strings"
)

// errorCode is A&AI's own name of an error, as in its error.properties.
type errorCode string

const (
	codeInvalidInput      errorCode = "AAI_3000"
	codeBadNesting        errorCode = "AAI_3001"
	codeRetiredVersion    errorCode = "AAI_3007"
	codeBadEncoding       errorCode = "AAI_3008"
	codeUnknownFunction   errorCode = "AAI_3012"
	codeVersionNotServed  errorCode = "AAI_3016"
	codeNoVersion         errorCode = "AAI_3017"
	codeNoPayload         errorCode = "AAI_3102"
	codeUnauthorized      errorCode = "AAI_3300"
	codeInternal          errorCode = "AAI_4000"
	codeNoAppID           errorCode = "AAI_4009"
	codeNoTransactionID   errorCode = "AAI_4010"
	codeBadDepth          errorCode = "AAI_4016"
	codeNoEdgeRule        errorCode = "AAI_6107" // from the relationship sub-resource
	codeDeleteBlocked     errorCode = "AAI_6110"
	codeBadEnvelope       errorCode = "AAI_6111"
	codeNodeNotFound      errorCode = "AAI_6114"
	codeFieldMissing      errorCode = "AAI_6118"
	codeBadParameter      errorCode = "AAI_6120" // also: no edge rule, from a relationship-list
	codeTargetNotFound    errorCode = "AAI_6129"
	codeVersionRequired   errorCode = "AAI_6130"
	codeVersionMismatch   errorCode = "AAI_6131"
	codeVersionOnCreate   errorCode = "AAI_6135"
	codeReadTimeout       errorCode = "AAI_7406"
	codeMultiplicity      errorCode = "AAI_6140"
	codeContainmentEdge   errorCode = "AAI_6145"
	codePayloadLimit      errorCode = "AAI_6147"
	codeNoRelationship    errorCode = "AAI_6149"
	codeImplicitDeleteBan errorCode = "AAI_9109"

	// Only faults answer these.
	codeDatabase        errorCode = "AAI_5105"
	codeLocked          errorCode = "AAI_6134"
	codeDuplicate       errorCode = "AAI_6137"
	codeDuplicateDelete errorCode = "AAI_6138"
	codeRetrying        errorCode = "AAI_6142"
)

// errorSpec is the fixed part of an error. The placeholders of template count 1 to slots; message and ec follow them in
// the list of variables, any further variable comes last.
type errorSpec struct {
	http     int
	id       string
	template string
	slots    int
	message  string
	ec       string
}

const (
	invalidTemplate    = "Invalid input performing %1 on %2"
	notFoundTemplate   = "Resource not found for %1 using id %2"
	badVersionTemplate = "Request uri is not valid, please check the version %1"
	retiredTemplate    = "This version (%1) of the API is retired, please migrate to %2"
	writingTemplate    = "Error writing output performing %1 on %2"
	exhaustedTemplate  = "Could not persist transaction to storage back end. Exhausted retry amount"
	noTargetTemplate   = "Failed to make edge to missing target node of type %3 with keys %4 performing %1 on %2"
)

// errorSpecs holds the errors that the simulator can raise, with the values of aai-resources' error.properties.
var errorSpecs = map[errorCode]errorSpec{
	codeInvalidInput:      {400, "SVC3000", invalidTemplate, 2, invalidTemplate, "ERR.5.2.3000"},
	codeBadNesting:        {404, "SVC3001", notFoundTemplate, 2, notFoundTemplate, "ERR.5.6.3001"},
	codeRetiredVersion:    {410, "SVC3007", retiredTemplate, 2, retiredTemplate, "ERR.5.6.3007"},
	codeBadEncoding:       {400, "SVC3008", "URI is not encoded in UTF-8", 0, "URI is not encoded in UTF-8", "ERR.5.6.3008"},
	codeUnknownFunction:   {400, "SVC3012", "Unrecognized AAI function", 0, "Unrecognized AAI function", "ERR.5.6.3012"},
	codeVersionNotServed:  {400, "SVC3016", badVersionTemplate, 1, badVersionTemplate, "ERR.5.6.3007"},
	codeNoVersion:         {400, "SVC3016", badVersionTemplate, 1, "Request uri is not valid, please check the uri %1", "ERR.5.6.3007"},
	codeNoPayload:         {400, "POL3102", "Error parsing input performing %1 on %2", 2, "Error parsing input performing %1 on %2", "ERR.5.1.3102"},
	codeUnauthorized:      {403, "POL3300", "Unauthorized", 0, "Unauthorized", "ERR.5.1.3300"},
	codeInternal:          {500, "SVC3002", writingTemplate, 2, "Internal Error", "ERR.5.4.4000"},
	codeNoAppID:           {400, "SVC3000", invalidTemplate, 2, "Invalid X-FromAppId in header", "4.0.4009"},
	codeNoTransactionID:   {400, "SVC3000", invalidTemplate, 2, "Invalid X-TransactionId in header", "4.0.4010"},
	codeBadDepth:          {400, "SVC3000", invalidTemplate, 2, `The depth parameter must be a number or the string "all"`, "4.0.4016"},
	codeNoEdgeRule:        {400, "SVC3000", invalidTemplate, 2, "Required Edge-property not found in input data", "ERR.5.4.6107"},
	codeDeleteBlocked:     {400, "SVC3100", "Unsupported operation %1", 1, "Node cannot be deleted", "ERR.5.4.6110"},
	codeBadEnvelope:       {400, "SVC3000", invalidTemplate, 2, "JSON processing error", "ERR.5.4.6111"},
	codeNodeNotFound:      {404, "SVC3001", notFoundTemplate, 2, "Node Not Found", "ERR.5.4.6114"},
	codeFieldMissing:      {400, "SVC3000", invalidTemplate, 2, "Required Field not passed.", "ERR.5.4.6118"},
	codeBadParameter:      {400, "SVC3000", invalidTemplate, 2, "Bad Parameter Passed", "ERR.5.4.6120"},
	codeTargetNotFound:    {404, "SVC3003", noTargetTemplate, 4, "Error making edge to target node", "ERR.5.4.6129"},
	codeVersionRequired:   {412, "SVC3000", invalidTemplate, 2, "Precondition Required", "ERR.5.4.6130"},
	codeVersionMismatch:   {412, "SVC3000", invalidTemplate, 2, "Precondition Failed", "ERR.5.4.6131"},
	codeVersionOnCreate:   {412, "SVC3000", invalidTemplate, 2, "Resource version specified on create", "ERR.5.4.6135"},
	codeReadTimeout:       {400, "SVC7406", "Request Timed Out", 0, "Request Timed Out", "ERR.5.4.7406"},
	codeMultiplicity:      {400, "SVC3000", invalidTemplate, 2, "Edge multiplicity violated", "ERR.5.4.6140"},
	codeContainmentEdge:   {400, "SVC3000", invalidTemplate, 2, "Cannot create a nested/containment edge via relationship", "ERR.5.4.6145"},
	codePayloadLimit:      {400, "SVC3000", invalidTemplate, 2, "Payload Limit Reached, reduce payload", "ERR.5.4.6147"},
	codeNoRelationship:    {404, "SVC3000", invalidTemplate, 2, "No relationship was found", "ERR.5.4.6149"},
	codeImplicitDeleteBan: {403, "SVC3300", "Unauthorized", 0, "User is not allowed to perform implicit delete", "ERR.5.0.9109"},
	codeDatabase:          {500, "SVC3002", writingTemplate, 2, "Unexpected error reading/updating database", "ERR.5.4.5105"},
	codeLocked:            {500, "SVC6134", exhaustedTemplate, 0, exhaustedTemplate, "ERR.5.4.6134"},
	codeDuplicate:         {400, "SVC3000", invalidTemplate, 2, "Cannot perform writes on multiple vertices", "ERR.5.4.6137"},
	codeDuplicateDelete:   {400, "SVC3000", invalidTemplate, 2, "Cannot delete multiple vertices", "ERR.5.4.6138"},
	codeRetrying:          {400, "SVC3000", invalidTemplate, 2, "Retrying transaction", "ERR.5.4.6142"},
}

// apiError is a refused request. With page set it is the answer of the servlet container instead of A&AI's own: that
// status and no A&AI body.
type apiError struct {
	code       errorCode
	detail     string   // follows the code's message after a colon, if any
	extras     []string // variables after verb and path
	verb, path string   // what was being done; both empty when A&AI does not say
	page       int
	crash      bool // a null dereference inside A&AI, which bulk requests do not catch
}

func fail(code errorCode, format string, args ...any) *apiError {
	return &apiError{code: code, detail: fmt.Sprintf(format, args...)}
}

func containerPage(status int) *apiError { return &apiError{page: status} }

// at says which request the error belongs to, unless something closer to the cause said so before.
func (e *apiError) at(verb, path string) *apiError {
	if e.verb == "" {
		e.verb, e.path = verb, readable(path)
	}
	return e
}

func (e *apiError) with(extras ...string) *apiError {
	e.extras = extras
	return e
}

func (e *apiError) status() int { return errorSpecs[e.code].http }

func (e *apiError) message() string {
	message := errorSpecs[e.code].message
	if e.detail != "" {
		message += ":" + e.detail
	}
	return message
}

// Error makes a refusal usable as a Go error by callers in the same process.
func (e *apiError) Error() string {
	return fmt.Sprintf("status %d, %s: %s", e.status(), e.code, e.message())
}

// variables returns the list a client gets: placeholders, then message and ec, then the rest.
func (e *apiError) variables() []string {
	spec := errorSpecs[e.code]
	var all []string
	if e.verb != "" {
		all = append(all, e.verb, e.path)
	}
	all = append(all, e.extras...)
	for len(all) < spec.slots {
		all = append(all, "null")
	}
	vars := append([]string{}, all[:spec.slots]...)
	vars = append(vars, e.message(), spec.ec)
	return append(vars, all[spec.slots:]...)
}

// body returns the error as A&AI words it. XML has an element around each variable.
func (e *apiError) body(format wireFormat) object {
	spec := errorSpecs[e.code]
	exception := "serviceException"
	if strings.HasPrefix(spec.id, "POL") {
		exception = "policyException"
	}
	var variables any = e.variables()
	if format == xmlFormat {
		variables = object{{"variable", variables}}
	}
	text := fmt.Sprintf("%s (msg=%%%d) (ec=%%%d)", spec.template, spec.slots+1, spec.slots+2)
	return object{{"requestError", object{{exception, object{
		{"messageId", spec.id}, {"text", text}, {"variables", variables},
	}}}}}
}

// readable decodes a path for people; what cannot be decoded stays as it is.
func readable(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}
