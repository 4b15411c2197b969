package main

import (
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// openAPIDescription describes what all paths have in common.
const openAPIDescription = "Every path answers GET and HEAD, unless it is described with POST. Every answer carries `Vary: Accept` and `X-Content-Type-Options: nosniff`. One with an `ETag` may be kept by its caller and asked about with `If-None-Match`; every other one carries `Cache-Control: no-store`. " +
	"Callers bring a bearer token of Kubernetes, unless they use the listener for callers without one. Errors are problem documents (RFC 9457), also for callers that accept only text, and text for callers who ask in the dialect of EMCO 22.12: another method is answered as `MethodNotAllowed` below, another path as `NotFound`, and without a token another host than localhost or a loopback address as `MisdirectedRequest`. " +
	"Only what cannot be read as an HTTP request, or has a header of more than 64 KiB, is refused in plain text.\n\nClients should ignore properties they do not know: more may come."

// bearerDescription describes the token that a caller needs.
const bearerDescription = "A token that the hub's Kubernetes API server accepts. Its user needs the right to `get` or `list` `healthscopes.core.oam.dev`, in the namespace and of the name that are asked for; under /v1 and /v2, to `get` the URL's path as a non-resource URL, and for POST to `deploy` it."

// problems describes each error, by status code.
var problems = map[int]string{
	http.StatusBadRequest:            "A parameter is unknown, given twice, or has a value that cannot be, or the body has; `detail` names it.",
	http.StatusUnauthorized:          "There is no bearer token, or it is not accepted; `detail` says what to send.",
	http.StatusForbidden:             "The caller may not ask for this, or has no token and asks for a change; `detail` says which right is missing. Whether it exists is not said.",
	http.StatusNotFound:              "What was asked for does not exist; `detail` says what was looked for and where.",
	http.StatusMethodNotAllowed:      "The path does not answer the method; the header `Allow` names those that it does.",
	http.StatusConflict:              "The state of the deployment intent group does not allow this; `detail` says why.",
	http.StatusRequestEntityTooLarge: "The body has more than 16 KiB.",
	http.StatusUnprocessableEntity:   "The body is not the JSON that it should be; `detail` says where.",
	http.StatusNotImplemented:        "Nothing is deployed here: `rsync.enabled` is false in the configuration of the server.",
	http.StatusNotAcceptable:         "The path cannot be answered in a media type that the header Accept allows; `detail` names those it can.",
	http.StatusRequestURITooLong:     "Path and query together have more than 8000 bytes.",
	http.StatusMisdirectedRequest:    "The listener for callers without a token answers for localhost and loopback addresses only; `detail` names the host that was asked for.",
	http.StatusTooManyRequests:       "The caller has too many streams open already, or too many tokens that are not accepted have come from its address.",
	http.StatusInternalServerError:   "The server failed; its log says how.",
	http.StatusServiceUnavailable:    "What the answer is made of cannot be read now, or is not configured, or too much is asked for at once; `detail` says which, and there is `Retry-After` when it may be tried again.",
}

// problemHeaders are the headers of error responses, by status code.
var problemHeaders = map[int]openapi3.Headers{
	http.StatusUnauthorized:       {"WWW-Authenticate": header("The scheme to use.", true, openapi3.NewStringSchema().WithEnum(`Bearer realm="healthscope"`))},
	http.StatusMethodNotAllowed:   {"Allow": header("The methods that are allowed.", true, openapi3.NewStringSchema().WithEnum("GET, HEAD", "POST"))},
	http.StatusTooManyRequests:    {"Retry-After": {Ref: refTo + "headers/RetryAfter"}},
	http.StatusServiceUnavailable: {"Retry-After": {Ref: refTo + "headers/RetryAfter"}},
}

func header(description string, required bool, schema *openapi3.Schema) *openapi3.HeaderRef {
	return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: openapi3.Parameter{Description: description, Required: required, Schema: openapi3.NewSchemaRef("", schema)}}}
}

// responseName returns the name of the response with a status code: Go's text without spaces, such as NotFound.
func responseName(status int) string {
	if status == http.StatusRequestURITooLong {
		return "URITooLong"
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// newOpenAPI returns the document without paths.
func newOpenAPI(schemas openapi3.Schemas) *openapi3.T {
	head, kept := "Status code and header are those of GET; there is no content.", "The answer is still the one that the header If-None-Match names."
	responses := openapi3.ResponseBodies{
		"Head":                               {Value: &openapi3.Response{Description: &head}},
		responseName(http.StatusNotModified): {Value: &openapi3.Response{Description: &kept, Headers: openapi3.Headers{"ETag": {Ref: refTo + "headers/ETag"}}}},
	}
	for status, description := range problems {
		responses[responseName(status)] = &openapi3.ResponseRef{Value: &openapi3.Response{
			Description: &description, Headers: problemHeaders[status],
			Content: openapi3.Content{
				problemMedia: openapi3.NewMediaType().WithSchemaRef(openapi3.NewSchemaRef(refTo+"schemas/Problem", nil)),
				"text/plain": openapi3.NewMediaType().WithSchemaRef(openapi3.NewSchemaRef(refTo+"schemas/ErrorText", nil)),
			},
		}}
	}
	return &openapi3.T{
		OpenAPI: "3.1.0",
		Info: &openapi3.Info{
			Title: "HealthScope status API", Version: "devel", Summary: "Is my application healthy, in every cluster it runs in?", Description: openAPIDescription,
			License: &openapi3.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
		},
		Servers:  openapi3.Servers{{URL: "/"}},
		Security: openapi3.SecurityRequirements{{"BearerToken": {}}, {}},
		Tags: openapi3.Tags{
			{Name: "scopes", Description: "HealthScopes: applications with all that belongs to them, in every cluster."},
			{Name: "documents", Description: "Status documents: what was asked for, what was applied, and what is really there."},
			{Name: "deployments", Description: "Deployment intent groups: what is done with them."},
			{Name: "server", Description: "The server itself."},
		},
		Paths: openapi3.NewPaths(),
		Components: &openapi3.Components{
			SecuritySchemes: openapi3.SecuritySchemes{"BearerToken": {Value: &openapi3.SecurityScheme{Type: "http", Scheme: "bearer", Description: bearerDescription}}},
			Headers: openapi3.Headers{
				"ETag":       header("Identifies what is answered, for If-None-Match.", false, openapi3.NewStringSchema().WithPattern(`^"[!-~]+"$`)),
				"Link":       header("The URL of the next page, with `rel=\"next\"`; absent on the last page.", false, openapi3.NewStringSchema().WithPattern(`^<[^>]+>; rel="next"$`)),
				"RetryAfter": header("After how many seconds to try again; absent where that is of no use.", false, openapi3.NewIntegerSchema().WithMin(1)),
			},
			Responses: responses,
			Schemas:   schemas,
		},
	}
}
