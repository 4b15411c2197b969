package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNotReady marks the answer of /readyz, which is no failure of the server.
var errNotReady = errors.New("not ready")

// probe is the document of /healthz and /readyz when all is well.
type probe struct {
	Status string `json:"status"`
}

// routes are all paths that are served.
func (h *handler) routes() []route {
	jsonFirst, textFirst := []string{typeJSON, typeText}, []string{typeText, typeJSON}
	return []route{
		{pattern: "/scopes", parameters: []string{"namespace"}, offers: jsonFirst, answer: h.list},
		{pattern: "/scopes/{name}", offers: jsonFirst, answer: h.getInDefaultNamespace},
		{pattern: "/scopes/{namespace}/{name}", offers: jsonFirst, answer: h.get},
		{pattern: "/openapi.json", offers: []string{typeJSON}, answer: h.describe},
		{pattern: "/healthz", offers: textFirst, answer: h.alive},
		{pattern: "/readyz", offers: textFirst, answer: h.readiness},
	}
}

func (h *handler) list(ctx context.Context, _ *http.Request, query map[string]string) (answer, error) {
	where := "all namespaces"
	namespace, given := query["namespace"]
	if given {
		if err := checkNamespace(namespace); err != nil {
			return answer{}, err
		}
		where = fmt.Sprintf("namespace %q", namespace)
	}
	scopes, err := h.scopes.List(ctx, namespace)
	if err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot list the HealthScopes of %s: %w", where, err)
	}
	list := newScopeList(scopes)
	return answer{document: list, text: list.text}, nil
}

func (h *handler) get(ctx context.Context, r *http.Request, _ map[string]string) (answer, error) {
	namespace := r.PathValue("namespace")
	if err := checkNamespace(namespace); err != nil {
		return answer{}, err
	}
	return h.scope(ctx, r.PathValue("name"), namespace, fmt.Sprintf("in namespace %q", namespace))
}

func (h *handler) getInDefaultNamespace(ctx context.Context, r *http.Request, _ map[string]string) (answer, error) {
	where := fmt.Sprintf("in namespace %q, the default one; /scopes/{namespace}/{name} looks in another", h.defaultNamespace)
	return h.scope(ctx, r.PathValue("name"), h.defaultNamespace, where)
}

// scope answers with one scope; where says for an error where it was looked for.
func (h *handler) scope(ctx context.Context, name, namespace, where string) (answer, error) {
	if err := checkScopeName(name); err != nil {
		return answer{}, err
	}
	found, err := h.scopes.Get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return answer{}, failf(http.StatusNotFound, "there is no HealthScope %q %s", name, where)
	}
	if err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot get HealthScope %q in namespace %q: %w", name, namespace, err)
	}
	document := newScope(found)
	return answer{document: document, text: document.text}, nil
}

func (h *handler) describe(context.Context, *http.Request, map[string]string) (answer, error) {
	return answer{document: h.description}, nil
}

func (h *handler) alive(context.Context, *http.Request, map[string]string) (answer, error) {
	return answer{document: probe{Status: "ok"}, text: func() string { return "ok\n" }}, nil
}

func (h *handler) readiness(ctx context.Context, r *http.Request, query map[string]string) (answer, error) {
	if err := h.ready(); err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "%w: %w", errNotReady, err)
	}
	return h.alive(ctx, r, query)
}
