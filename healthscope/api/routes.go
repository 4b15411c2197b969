package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/healthscope/healthscope/healthscope/status"
)

// errNotConfigured marks the refusal of what the server is not set up for: asking again is of no use.
var errNotConfigured = errors.New("not configured")

// errNotReady marks the answer of /readyz, which is no failure of the server.
var errNotReady = errors.New("not ready")

// probe is the document of /healthz and /readyz when all is well.
type probe struct {
	Status string `json:"status"`
}

// Verbs of Access.
const (
	verbGet  = "get"
	verbList = "list"
)

// routes are all paths that are served.
func (h *handler) routes() []route {
	jsonFirst, textFirst, jsonOnly := []string{typeJSON, typeText}, []string{typeText, typeJSON}, []string{typeJSON}
	watch := []string{parameterWatch}
	pages := []string{parameterContinue, parameterHealth, parameterLabelSelector, parameterLimit, parameterNamespace, parameterWatch}
	return []route{
		{pattern: "/scopes", parameters: []string{parameterNamespace, parameterWatch}, offers: jsonFirst, access: mayList, answer: h.list, watch: listed},
		{pattern: "/scopes/{name}", parameters: watch, offers: jsonFirst, access: h.mayGet, answer: h.get, watch: h.named},
		{pattern: "/scopes/{namespace}/{name}", parameters: watch, offers: jsonFirst, access: h.mayGet, answer: h.get, watch: h.named},
		{pattern: "/v1alpha1/scopes", parameters: pages, offers: jsonFirst, access: mayList, answer: h.listPage, watch: listed},
		{pattern: "/v1alpha1/scopes/{namespace}/{name}", parameters: watch, offers: jsonFirst, access: h.mayGet, answer: h.get, watch: h.named},
		{
			pattern:    "/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}/status",
			parameters: status.Parameters(), repeated: true, offers: jsonOnly, timeout: documentTimeout,
			access: mayAskURL("project", "app", "version", "group"), answer: h.groupStatus,
		},
		{
			pattern:    "/v2/cluster-providers/{provider}/clusters/{cluster}/status",
			parameters: status.Parameters(), repeated: true, offers: jsonOnly, timeout: documentTimeout,
			access: mayAskURL("provider", "cluster"), answer: h.clusterStatus,
		},
		{pattern: "/v1/instance/{id}/status", offers: jsonOnly, timeout: documentTimeout, access: mayAskInstance, answer: h.instanceStatus},
		{pattern: "/openapi.json", offers: jsonOnly, answer: h.describe},
		{pattern: "/healthz", offers: textFirst, answer: h.alive},
		{pattern: "/readyz", offers: textFirst, answer: h.readiness},
	}
}

// mayAskURL checks the names in a path, and asks for the right to the URL itself.
func mayAskURL(names ...string) func(*http.Request, url.Values) (Access, error) {
	return func(r *http.Request, _ url.Values) (Access, error) {
		for _, name := range names {
			if err := checkPathName(name, r.PathValue(name)); err != nil {
				return Access{}, err
			}
		}
		return Access{Verb: verbGet, Path: r.URL.Path}, nil
	}
}

func mayAskInstance(r *http.Request, _ url.Values) (Access, error) {
	return Access{Verb: verbGet, Path: r.URL.Path}, checkInstance(r.PathValue("id"))
}

func (h *handler) describe(context.Context, *http.Request, url.Values) (answer, error) {
	return answer{document: h.description}, nil
}

func (h *handler) alive(context.Context, *http.Request, url.Values) (answer, error) {
	return answer{document: probe{Status: "ok"}, text: func() string { return "ok\n" }}, nil
}

func (h *handler) readiness(ctx context.Context, r *http.Request, query url.Values) (answer, error) {
	if err := cmp.Or(h.ready(), h.current()); err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "%w: %w", errNotReady, err)
	}
	return h.alive(ctx, r, query)
}
