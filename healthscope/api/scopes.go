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
	"k8s.io/apimachinery/pkg/util/validation"
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

// matches reports whether a scope that the selection covers, with those labels and that item, is in the selection.
func (s selection) matches(set labels.Set, item ScopeItem) bool {
	return (s.labels == nil || s.labels.Matches(set)) && (s.health == "" || s.health == item.Health)
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

// readList reads the selection and the page of a request for a list.
func readList(q *requestInfo) error {
	q.selection = selection{namespace: q.query.Get(parameterNamespace), health: q.query.Get(parameterHealth)}
	q.access = Access{Verb: verbList, Namespace: q.selection.namespace}
	if q.query.Has(parameterNamespace) {
		if err := checkName("namespace", q.selection.namespace, validation.IsDNS1123Label); err != nil {
			return err
		}
	}
	if q.query.Has(parameterHealth) && !slices.Contains(healthValues, q.selection.health) {
		return q.parameterError(parameterHealth, "must be "+strings.Join(healthValues, ", "))
	}
	var err error
	if q.selection.labels, err = labels.Parse(q.query.Get(parameterLabelSelector)); err != nil {
		return q.parameterError(parameterLabelSelector, "must be a label selector: "+err.Error())
	}
	if q.query.Has(parameterLimit) {
		limit, err := strconv.ParseUint(q.query.Get(parameterLimit), 10, 16)
		if err != nil || limit > maxLimit {
			return q.parameterError(parameterLimit, fmt.Sprintf("must be a number from 0 to %d, where 0 asks for all", maxLimit))
		}
		q.page.limit = int(limit)
	}
	if text := q.query.Get(parameterContinue); text != "" {
		var c continuation
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, &c) != nil {
			return q.parameterError(parameterContinue, "must be metadata.continue of the page before")
		}
		if c.Query != listIdentity(q.query) {
			return q.parameterError(parameterContinue, "must be of a list with the same namespace, labelSelector and health; list from the start without it")
		}
		q.page.after = c.After
	}
	return nil
}

// parameterError returns the error for an invalid value of a parameter.
func (q *requestInfo) parameterError(name, rule string) error {
	return statusErrorf(http.StatusBadRequest, "query parameter %q has the value %s; it %s", name, quote(q.query.Get(name)), rule)
}

// listIdentity returns an identifier of the list of a query, the same for all its pages.
func listIdentity(query url.Values) string {
	return etagOf([]byte(url.Values{
		parameterNamespace: query[parameterNamespace], parameterLabelSelector: query[parameterLabelSelector], parameterHealth: query[parameterHealth],
	}.Encode()))
}

// checkStream returns an error when a request for a stream has parameters of pages.
func (q *requestInfo) checkStream() error {
	for _, name := range []string{parameterLimit, parameterContinue} {
		if q.query.Has(name) {
			return q.parameterError(name, "cannot be together with watch=true: a stream has no pages")
		}
	}
	return nil
}

// readScope reads the selection of the scope in a path.
func (h *handler) readScope(q *requestInfo) error {
	q.selection = selection{namespace: q.PathValue("namespace"), name: q.PathValue("name")}
	if !hasNamespaceInPath(q) {
		q.selection.namespace = h.DefaultNamespace
	}
	q.access = Access{Verb: verbGet, Namespace: q.selection.namespace, Name: q.selection.name}
	if err := checkName("namespace", q.selection.namespace, validation.IsDNS1123Label); err != nil {
		return err
	}
	return checkName("name", q.selection.name, validation.IsDNS1123Subdomain)
}

// hasNamespaceInPath reports whether the path of a scope contains its namespace.
func hasNamespaceInPath(q *requestInfo) bool { return strings.Contains(q.Pattern, "{namespace}") }

// listScopes returns all scopes of a query.
func (h *handler) listScopes(ctx context.Context, q *requestInfo) (response, error) {
	list, err := h.listSelected(ctx, q.selection)
	return response{document: list, text: list.text, cacheable: true}, err
}

// listScopePage returns one page of the scopes of a query.
func (h *handler) listScopePage(ctx context.Context, q *requestInfo) (response, error) {
	list, err := h.listSelected(ctx, q.selection)
	if err != nil {
		return response{}, err
	}
	document := ScopePage{ScopeList: list}
	document.Items = slices.DeleteFunc(document.Items, func(item ScopeItem) bool { return item.scopeName().compare(q.page.after) <= 0 })
	a := response{cacheable: true}
	if rest := len(document.Items) - q.page.limit; q.page.limit > 0 && rest > 0 {
		document.Items = document.Items[:q.page.limit]
		token, err := json.Marshal(continuation{After: document.Items[q.page.limit-1].scopeName(), Query: listIdentity(q.query)})
		if err != nil {
			return response{}, fmt.Errorf("cannot encode the token of the next page: %w", err)
		}
		document.Metadata = ListMetadata{Continue: base64.RawURLEncoding.EncodeToString(token), RemainingItemCount: rest}
		q.query.Set(parameterContinue, document.Metadata.Continue)
		a.next = (&url.URL{Path: q.URL.Path, RawQuery: q.query.Encode()}).String()
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
	if err := h.Current(); err != nil {
		return ScopeList{}, statusErrorf(http.StatusServiceUnavailable, "cannot say how the HealthScopes of %s are now: %w", where, err)
	}
	scopes, err := h.Scopes.List(ctx, about.namespace)
	if err != nil {
		return ScopeList{}, statusErrorf(http.StatusServiceUnavailable, "cannot list the HealthScopes of %s: %w", where, err)
	}
	return newScopeList(scopes, about), nil
}

func (h *handler) getScope(ctx context.Context, q *requestInfo) (response, error) {
	about := q.selection
	if err := h.Current(); err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "cannot say how HealthScope %q in namespace %q is now: %w", about.name, about.namespace, err)
	}
	found, err := h.Scopes.Get(ctx, about.namespace, about.name)
	if apierrors.IsNotFound(err) {
		where := fmt.Sprintf("in namespace %q", about.namespace)
		if !hasNamespaceInPath(q) {
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
