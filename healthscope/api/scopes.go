package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// Query parameters of the scopes. Those after watch are accepted only below /v1alpha1.
const (
	parameterNamespace     = "namespace"
	parameterWatch         = "watch"
	parameterLabelSelector = "labelSelector"
	parameterHealth        = "health"
	parameterLimit         = "limit"
	parameterContinue      = "continue"
)

// maxLimit is the maximum number of scopes in a page.
const maxLimit = 1000

// selection selects scopes. An empty field selects all.
type selection struct {
	namespace, name string
	labels          labels.Selector
	health          string
}

// covers reports whether a scope of that name can be in the selection.
func (s selection) covers(namespace, name string) bool {
	return (s.namespace == "" || s.namespace == namespace) && (s.name == "" || s.name == name)
}

// matches reports whether a scope with those labels and that item is in the selection.
func (s selection) matches(set labels.Set, item ScopeItem) bool {
	return s.covers(item.Namespace, item.Name) && (s.labels == nil || s.labels.Matches(set)) && (s.health == "" || s.health == item.Health)
}

// page is a part of a list. The zero value is the whole list.
type page struct {
	// limit is the maximum number of scopes; 0 for no limit.
	limit int
	// after is the last scope of the previous page.
	after ScopeName
}

// continuation is the content of the parameter continue. It holds a position in the order of the list and no version of the scopes, so that it
// stays valid when scopes change, and in all replicas.
type continuation struct {
	After ScopeName `json:"after"`
	// Query identifies the list.
	Query string `json:"query"`
}

// parseListQuery returns the selection and the page of a query.
func parseListQuery(query url.Values) (selection, page, error) {
	s, p := selection{namespace: query.Get(parameterNamespace), health: query.Get(parameterHealth)}, page{}
	if query.Has(parameterNamespace) {
		if err := checkNamespace(s.namespace); err != nil {
			return s, p, err
		}
	}
	if query.Has(parameterHealth) && !slices.Contains(healthValues, s.health) {
		return s, p, parameterError(query, parameterHealth, "must be "+strings.Join(healthValues, ", "))
	}
	var err error
	if s.labels, err = labels.Parse(query.Get(parameterLabelSelector)); err != nil {
		return s, p, parameterError(query, parameterLabelSelector, "must be a label selector: "+err.Error())
	}
	if text := query.Get(parameterLimit); query.Has(parameterLimit) {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit > maxLimit {
			return s, p, parameterError(query, parameterLimit, fmt.Sprintf("must be a number from 0 to %d, where 0 asks for all", maxLimit))
		}
		p.limit = int(limit)
	}
	if text := query.Get(parameterContinue); text != "" {
		var c continuation
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, &c) != nil {
			return s, p, parameterError(query, parameterContinue, "must be metadata.continue of the page before")
		}
		if c.Query != listIdentity(query) {
			return s, p, parameterError(query, parameterContinue, "must be of a list with the same namespace, labelSelector and health; list from the start without it")
		}
		p.after = c.After
	}
	return s, p, nil
}

// parameterError returns the error for an invalid value of a parameter.
func parameterError(query url.Values, name, rule string) error {
	return statusErrorf(http.StatusBadRequest, "query parameter %q has the value %s; it %s", name, quote(query.Get(name)), rule)
}

// listIdentity returns an identifier of the list of a query, the same for all its pages.
func listIdentity(query url.Values) string {
	return etagOf([]byte(url.Values{
		parameterNamespace: query[parameterNamespace], parameterLabelSelector: query[parameterLabelSelector], parameterHealth: query[parameterHealth],
	}.Encode()))
}

func listAccess(_ *http.Request, query url.Values) (Access, error) {
	about, _, err := parseListQuery(query)
	return Access{Verb: verbList, Namespace: about.namespace}, err
}

// scopesInQuery returns the selection of a stream of a list.
func scopesInQuery(_ *http.Request, query url.Values) (selection, error) {
	for _, name := range []string{parameterLimit, parameterContinue} {
		if query.Has(name) {
			return selection{}, parameterError(query, name, "cannot be together with watch=true: a stream has no pages")
		}
	}
	about, _, err := parseListQuery(query)
	return about, err
}

func (h *handler) getAccess(r *http.Request, query url.Values) (Access, error) {
	about, err := h.scopeInPath(r, query)
	return Access{Verb: verbGet, Namespace: about.namespace, Name: about.name}, err
}

// scopeInPath returns the selection of the scope in a path.
func (h *handler) scopeInPath(r *http.Request, _ url.Values) (selection, error) {
	s := selection{namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	if !hasNamespaceInPath(r) {
		s.namespace = h.defaultNamespace
	}
	if err := checkNamespace(s.namespace); err != nil {
		return s, err
	}
	return s, checkScopeName(s.name)
}

// hasNamespaceInPath reports whether the path of a scope contains its namespace.
func hasNamespaceInPath(r *http.Request) bool { return strings.Contains(r.Pattern, "{namespace}") }

// listScopes returns all scopes of a query.
func (h *handler) listScopes(ctx context.Context, _ *http.Request, query url.Values) (response, error) {
	about, _, err := parseListQuery(query)
	if err != nil {
		return response{}, err
	}
	list, err := h.listSelected(ctx, about)
	return response{document: list, text: list.text, cacheable: true}, err
}

// listScopePage returns one page of the scopes of a query.
func (h *handler) listScopePage(ctx context.Context, r *http.Request, query url.Values) (response, error) {
	about, part, err := parseListQuery(query)
	if err != nil {
		return response{}, err
	}
	list, err := h.listSelected(ctx, about)
	if err != nil {
		return response{}, err
	}
	document := ScopePage{ScopeList: list}
	if part.after != (ScopeName{}) {
		document.Items = slices.DeleteFunc(document.Items, func(item ScopeItem) bool { return item.scopeName().compare(part.after) <= 0 })
	}
	a := response{cacheable: true}
	if rest := len(document.Items) - part.limit; part.limit > 0 && rest > 0 {
		document.Items = document.Items[:part.limit]
		token, err := json.Marshal(continuation{After: document.Items[part.limit-1].scopeName(), Query: listIdentity(query)})
		if err != nil {
			return response{}, fmt.Errorf("cannot encode the token of the next page: %w", err)
		}
		document.Metadata = ListMetadata{Continue: base64.RawURLEncoding.EncodeToString(token), RemainingItemCount: rest}
		query.Set(parameterContinue, document.Metadata.Continue)
		a.next = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	}
	a.document, a.text = document, document.text
	return a, nil
}

// listSelected reads the scopes of a selection.
func (h *handler) listSelected(ctx context.Context, about selection) (ScopeList, error) {
	where := "all namespaces"
	if about.namespace != "" {
		where = fmt.Sprintf("namespace %q", about.namespace)
	}
	if err := h.current(); err != nil {
		return ScopeList{}, statusErrorf(http.StatusServiceUnavailable, "cannot say how the HealthScopes of %s are now: %w", where, err)
	}
	scopes, err := h.scopes.List(ctx, about.namespace)
	if err != nil {
		return ScopeList{}, statusErrorf(http.StatusServiceUnavailable, "cannot list the HealthScopes of %s: %w", where, err)
	}
	return newScopeList(scopes, about), nil
}

func (h *handler) getScope(ctx context.Context, r *http.Request, query url.Values) (response, error) {
	about, err := h.scopeInPath(r, query)
	if err != nil {
		return response{}, err
	}
	if err := h.current(); err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "cannot say how HealthScope %q in namespace %q is now: %w", about.name, about.namespace, err)
	}
	found, err := h.scopes.Get(ctx, about.namespace, about.name)
	if apierrors.IsNotFound(err) {
		where := fmt.Sprintf("in namespace %q", about.namespace)
		if !hasNamespaceInPath(r) {
			where += ", the default one; /scopes/{namespace}/{name} looks in another"
		}
		return response{}, statusErrorf(http.StatusNotFound, "there is no HealthScope %q %s", about.name, where)
	}
	if err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "cannot get HealthScope %q in namespace %q: %w", about.name, about.namespace, err)
	}
	document := NewScope(found)
	return response{document: document, text: document.text, cacheable: true}, nil
}
