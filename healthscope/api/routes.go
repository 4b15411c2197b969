package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// Query parameters of the scopes.
const (
	parameterNamespace = "namespace"
	parameterWatch     = "watch"
)

// Verbs of Access.
const (
	verbGet  = "get"
	verbList = "list"
)

// routes are all paths that are served.
func (h *handler) routes() []route {
	jsonFirst, textFirst, jsonOnly := []string{typeJSON, typeText}, []string{typeText, typeJSON}, []string{typeJSON}
	watch := []string{parameterWatch}
	return []route{
		{pattern: "/scopes", parameters: []string{parameterNamespace, parameterWatch}, offers: jsonFirst, access: mayList, answer: h.list, watch: listed},
		{pattern: "/scopes/{name}", parameters: watch, offers: jsonFirst, access: h.mayGet, answer: h.get, watch: h.named},
		{pattern: "/scopes/{namespace}/{name}", parameters: watch, offers: jsonFirst, access: h.mayGet, answer: h.get, watch: h.named},
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

func mayList(_ *http.Request, query url.Values) (Access, error) {
	if query.Has(parameterNamespace) {
		if err := checkNamespace(query.Get(parameterNamespace)); err != nil {
			return Access{}, err
		}
	}
	return Access{Verb: verbList, Namespace: query.Get(parameterNamespace)}, nil
}

func listed(_ *http.Request, query url.Values) selection {
	return selection{namespace: query.Get(parameterNamespace)}
}

func (h *handler) mayGet(r *http.Request, query url.Values) (Access, error) {
	about := h.named(r, query)
	if err := checkNamespace(about.namespace); err != nil {
		return Access{}, err
	}
	if err := checkScopeName(about.name); err != nil {
		return Access{}, err
	}
	return Access{Verb: verbGet, Namespace: about.namespace, Name: about.name}, nil
}

// named returns the scope that a path names.
func (h *handler) named(r *http.Request, _ url.Values) selection {
	s := selection{namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	if !h.inPath(r) {
		s.namespace = h.defaultNamespace
	}
	return s
}

// inPath says whether the path of a scope names its namespace.
func (*handler) inPath(r *http.Request) bool { return strings.Contains(r.Pattern, "{namespace}") }

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

func (h *handler) list(ctx context.Context, _ *http.Request, query url.Values) (answer, error) {
	where := "all namespaces"
	namespace := query.Get(parameterNamespace)
	if namespace != "" {
		where = fmt.Sprintf("namespace %q", namespace)
	}
	if err := h.current(); err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot say how the HealthScopes of %s are now: %w", where, err)
	}
	scopes, err := h.scopes.List(ctx, namespace)
	if err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot list the HealthScopes of %s: %w", where, err)
	}
	list := newScopeList(scopes)
	return answer{document: list, text: list.text, lasting: true}, nil
}

func (h *handler) get(ctx context.Context, r *http.Request, query url.Values) (answer, error) {
	about := h.named(r, query)
	if err := h.current(); err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot say how HealthScope %q in namespace %q is now: %w", about.name, about.namespace, err)
	}
	found, err := h.scopes.Get(ctx, about.namespace, about.name)
	if apierrors.IsNotFound(err) {
		where := fmt.Sprintf("in namespace %q", about.namespace)
		if !h.inPath(r) {
			where += ", the default one; /scopes/{namespace}/{name} looks in another"
		}
		return answer{}, failf(http.StatusNotFound, "there is no HealthScope %q %s", about.name, where)
	}
	if err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot get HealthScope %q in namespace %q: %w", about.name, about.namespace, err)
	}
	document := newScope(found)
	return answer{document: document, text: document.text, lasting: true}, nil
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
