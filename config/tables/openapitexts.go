package main

import (
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// openAPIDescription describes what all paths have in common.
const openAPIDescription = "Each path supports GET and HEAD, unless it is described with POST. Each response has the headers `Vary: Accept` and `X-Content-Type-Options: nosniff`. A response with an `ETag` may be cached and revalidated with `If-None-Match`; every other response has `Cache-Control: no-store`. " +
	"A request needs a bearer token of Kubernetes, except on the listener for callers without a token. Errors are problem documents (RFC 9457), also for callers that accept only text, and text for requests in the dialect of EMCO 22.12. The response to another method is `MethodNotAllowed` below, and to another path `NotFound`; on the listener without tokens, the response to a request for another host than localhost or a loopback address is `MisdirectedRequest`. " +
	"Only an invalid HTTP request, or one with more than 64 KiB of headers, is rejected in plain text.\n\nClients should ignore properties that they do not know: later versions may add more."

// bearerDescription describes the token that a caller needs.
const bearerDescription = "A token that the hub's Kubernetes API server accepts. For scopes, its user needs the right to `get` or `list` `healthscopes.core.oam.dev`, with the requested name and in the requested namespace. Under /v1 and /v2, its user needs the right to `get` the path as a non-resource URL, and for POST the right to `deploy` it."

// problems describes each error, by status code.
var problems = map[int]string{
	http.StatusBadRequest:            "A parameter is unknown, repeated or invalid, or the body has an invalid value; `detail` names it.",
	http.StatusUnauthorized:          "The request has no bearer token, or the token is not accepted; `detail` describes what to send.",
	http.StatusForbidden:             "The caller lacks the right for this request, whether or not the object exists, or requests a change without a token; `detail` names the missing right.",
	http.StatusNotFound:              "The requested object does not exist; `detail` names it, and the place where it was searched for.",
	http.StatusMethodNotAllowed:      "The path does not support the method; the header `Allow` lists the supported methods.",
	http.StatusConflict:              "The state of the deployment intent group does not allow this; `detail` has the reason.",
	http.StatusRequestEntityTooLarge: "The body is larger than 16 KiB.",
	http.StatusUnprocessableEntity:   "The body is not valid JSON, or does not match its schema; `detail` names the place.",
	http.StatusNotImplemented:        "The server does not deploy: `rsync.enabled` is false in its configuration.",
	http.StatusNotAcceptable:         "The path has no media type that the header `Accept` allows; `detail` lists its media types.",
	http.StatusRequestURITooLong:     "Path and query together are longer than 8000 bytes.",
	http.StatusMisdirectedRequest:    "The listener for callers without a token serves only localhost and loopback addresses; `detail` names the requested host.",
	http.StatusTooManyRequests:       "The caller has too many open streams, or its address has sent too many tokens that were not accepted.",
	http.StatusInternalServerError:   "The server has an internal error; its log has the details.",
	http.StatusServiceUnavailable:    "The data for the response cannot be read now or are not configured, or there are too many concurrent requests; `detail` names the reason. The header `Retry-After` is present if the request may be retried.",
}

// problemHeaders are the headers of error responses, by status code.
var problemHeaders = map[int]openapi3.Headers{
	http.StatusUnauthorized:       {"WWW-Authenticate": header("The authentication scheme.", true, openapi3.NewStringSchema().WithEnum(`Bearer realm="healthscope"`))},
	http.StatusMethodNotAllowed:   {"Allow": header("The supported methods.", true, openapi3.NewStringSchema().WithEnum("GET, HEAD", "POST"))},
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
	head, kept := "Status code and headers are those of GET. The response has no content.", "The response has not changed since the one that the header `If-None-Match` names."
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
			{Name: "scopes", Description: "HealthScopes: the health of applications in all clusters."},
			{Name: "documents", Description: "Status documents: the desired resources, the applied resources, and their status in the clusters."},
			{Name: "deployments", Description: "Actions on deployment intent groups."},
			{Name: "server", Description: "The server itself."},
		},
		Paths: openapi3.NewPaths(),
		Components: &openapi3.Components{
			SecuritySchemes: openapi3.SecuritySchemes{"BearerToken": {Value: &openapi3.SecurityScheme{Type: "http", Scheme: "bearer", Description: bearerDescription}}},
			Headers: openapi3.Headers{
				"ETag":       header("Identifies the response, for `If-None-Match`.", false, openapi3.NewStringSchema().WithPattern(`^"[!-~]+"$`)),
				"Link":       header("The URL of the next page, with `rel=\"next\"`; absent on the last page.", false, openapi3.NewStringSchema().WithPattern(`^<[^>]+>; rel="next"$`)),
				"RetryAfter": header("The number of seconds after which to retry. Absent if a retry is of no use.", false, openapi3.NewIntegerSchema().WithMin(1)),
			},
			Responses: responses,
			Schemas:   schemas,
		},
	}
}
