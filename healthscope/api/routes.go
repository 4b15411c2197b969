package api

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // For openapi.json.
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/healthscope/healthscope/healthscope/status"
)

// openAPI describes the server in OpenAPI 3.1. It is generated from Operations and the types of the responses; tests validate all responses
// against it.
//
//go:embed openapi.json
var openAPI []byte

// openAPIWithVersion returns openapi.json with the version of the program filled in.
func openAPIWithVersion(version string) json.RawMessage {
	const placeholder = `"version": "devel"` // It has no other place with the version.
	if version == "" {
		return openAPI
	}
	quoted, _ := encode(version) // A string can always be encoded.
	return bytes.Replace(openAPI, []byte(placeholder), append([]byte(`"version": `), quoted...), 1)
}

// errNotConfigured marks errors of requests that the server is not configured for, so that a retry is useless.
var errNotConfigured = errors.New("not configured")

// errNotReady marks the response of /readyz, which is not a failure of the server.
var errNotReady = errors.New("not ready")

// probe is the document of /healthz and /readyz on success.
type probe struct {
	// Status is always ok.
	Status string `enum:"ok" json:"status"`
}

// Verbs of Access.
const (
	verbGet  = "get"
	verbList = "list"
)

// Tags of operations.
const (
	tagScopes      = "scopes"
	tagDocuments   = "documents"
	tagDeployments = "deployments"
	tagServer      = "server"
)

// routes returns all routes.
func (h *handler) routes() []route {
	return slices.Concat(h.scopeRoutes(), h.documentRoutes(), h.deploymentRoutes(), h.serverRoutes())
}

func (h *handler) scopeRoutes() []route {
	one := func(path, id, summary, description string) route {
		return route{
			Operation: Operation{
				Path: path, ID: id, Tag: tagScopes, Summary: summary, Description: description,
				Parameters: []Parameter{watchParameter}, MediaTypes: []string{typeJSON, typeText}, Document: Scope{}, Text: "HealthWord",
			},
			read: h.readScope, respond: h.getScope, streams: true,
		}
	}
	many := func(path, id, summary, description string, parameters []Parameter, document any, answer responder) route {
		return route{
			Operation: Operation{
				Path: path, ID: id, Tag: tagScopes, Summary: summary, Description: description,
				Parameters: parameters, MediaTypes: []string{typeJSON, typeText}, Document: document, Text: "HealthLines",
			},
			read: readList, respond: answer, streams: true,
		}
	}
	return []route{
		many("/scopes", "listScopes", "List all scopes, sorted by namespace and name", "The response has a summary of each scope. For a namespace that does not exist, the list is empty.",
			[]Parameter{namespaceParameter, watchParameter}, ScopeList{}, h.listScopes),
		one("/scopes/{name}", "getScopeInDefaultNamespace", "Get a scope in the default namespace", "The configuration of the server sets the default namespace."),
		one("/scopes/{namespace}/{name}", "getScope", "Get a scope", ""),
		many("/v1alpha1/scopes", "listScopePages", "List scopes by label and health, in pages, sorted by namespace and name",
			"The same as /scopes, with filters and pages. A scope that is created or deleted between the requests for two pages may be in a later page or in none. Every other scope is in exactly one page.",
			pageParameters, ScopePage{}, h.listScopePage),
		one("/v1alpha1/scopes/{namespace}/{name}", "getScopeV1alpha1", "Get a scope", "The same as /scopes/{namespace}/{name}."),
	}
}

func (h *handler) documentRoutes() []route {
	return []route{
		{
			Operation: Operation{
				Path: groupPath + "/status", ID: "getGroupStatus", Tag: tagDocuments,
				Summary: "Get the status of a deployment intent group", Description: "The document shows the context in force, unless `instance` names another.",
				Parameters: documentParameters, MediaTypes: []string{typeJSON, typeEMCO}, Document: status.Document{},
				EMCO: []any{status.EMCOGroup{}, status.EMCOApps{}, status.EMCOClusters{}, status.EMCOResources{}},
			},
			repeated: true, timeout: documentTimeout, read: readPath(verbGet, "project", "app", "version", "group"), respond: h.groupStatus,
		},
		{
			Operation: Operation{
				Path: "/v2/cluster-providers/{provider}/clusters/{cluster}/status", ID: "getClusterStatus", Tag: tagDocuments,
				Summary: "Get the status of the network intents of a cluster", Description: "The only app of the document is `network-intents`.",
				Parameters: documentParameters, MediaTypes: []string{typeJSON, typeEMCO}, Document: status.Document{}, EMCO: []any{status.EMCONetwork{}},
			},
			repeated: true, timeout: documentTimeout, read: readPath(verbGet, "provider", "cluster"), respond: h.clusterStatus,
		},
		{
			Operation: Operation{
				Path: "/v1/instance/{id}/status", ID: "getInstanceStatus", Tag: tagDocuments,
				Summary:     "Get the status of an instance of k8splugin",
				Description: "The response has the bundles whose label `" + status.InstanceLabel + "` is the id, in the form of k8splugin's API.",
				MediaTypes:  []string{typeJSON}, Document: status.InstanceDocument{},
			},
			timeout: documentTimeout, read: readInstance, respond: h.instanceStatus,
		},
	}
}

func (h *handler) serverRoutes() []route {
	textFirst := []string{typeText, typeJSON}
	return []route{
		{
			Operation: Operation{Path: "/openapi.json", ID: "getOpenAPI", Tag: tagServer, Summary: "Get this document", MediaTypes: []string{typeJSON}, Constant: true},
			respond:   h.serveOpenAPI,
		},
		{
			Operation: Operation{Path: "/healthz", ID: "getHealthz", Tag: tagServer, Summary: "Check whether the server is alive", MediaTypes: textFirst, Document: probe{}, Text: "ProbeWord", Constant: true},
			respond:   h.serveHealthz,
		},
		{
			Operation: Operation{Path: "/readyz", ID: "getReadyz", Tag: tagServer, Summary: "Check whether the server can serve scopes", MediaTypes: textFirst, Document: probe{}, Text: "ProbeWord"},
			respond:   h.serveReadyz,
		},
	}
}

// readPath returns a function that validates the names in a path, and reads the access with a verb to the URL itself.
func readPath(verb string, names ...string) func(*requestInfo) error {
	return func(q *requestInfo) error {
		q.access = Access{Verb: verb, Path: q.URL.Path}
		for _, name := range names {
			if err := checkPathName(name, q.PathValue(name)); err != nil {
				return err
			}
		}
		return nil
	}
}

func readInstance(q *requestInfo) error {
	q.access = Access{Verb: verbGet, Path: q.URL.Path}
	return checkName("id", q.PathValue("id"), validation.IsValidLabelValue)
}

func (h *handler) serveOpenAPI(context.Context, *requestInfo) (response, error) {
	return response{document: h.description}, nil
}

func (h *handler) serveHealthz(context.Context, *requestInfo) (response, error) {
	return response{document: probe{Status: "ok"}, text: func() string { return "ok\n" }}, nil
}

func (h *handler) serveReadyz(ctx context.Context, q *requestInfo) (response, error) {
	if err := cmp.Or(h.Ready(), h.Current()); err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: %w", errNotReady, err)
	}
	return h.serveHealthz(ctx, q)
}
