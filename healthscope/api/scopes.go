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

// Query parameters of the scopes. Those after watch are only taken below /v1alpha1.
const (
	parameterNamespace     = "namespace"
	parameterWatch         = "watch"
	parameterLabelSelector = "labelSelector"
	parameterHealth        = "health"
	parameterLimit         = "limit"
	parameterContinue      = "continue"
)

// maxLimit bounds how many scopes a caller may ask for in one page.
const maxLimit = 1000

// selection is the scopes that an answer is about. An empty field selects all of them.
type selection struct {
	namespace, name string
	labels          labels.Selector
	health          string
}

// covers reports whether a scope of that name can be selected.
func (s selection) covers(namespace, name string) bool {
	return (s.namespace == "" || s.namespace == namespace) && (s.name == "" || s.name == name)
}

// matches reports whether a scope with those labels, in short, is selected.
func (s selection) matches(set labels.Set, item ScopeItem) bool {
	return s.covers(item.Namespace, item.Name) && (s.labels == nil || s.labels.Matches(set)) && (s.health == "" || s.health == item.Health)
}

// page is a part of a list. Its zero value is the whole list.
type page struct {
	// limit is how many scopes it has at most; 0 for any number.
	limit int
	// after is the last scope of the page before.
	after ScopeName
}

// continuation is what the parameter continue has. It names a place in the order of the list and not a state of the scopes, so that it stays
// valid when scopes change, in every replica.
type continuation struct {
	After ScopeName `json:"after"`
	// Query identifies the list that it is of.
	Query string `json:"query"`
}

// listOf reads which scopes a list has, and which part of it is asked for.
func listOf(query url.Values) (selection, page, error) {
	s, p := selection{namespace: query.Get(parameterNamespace), health: query.Get(parameterHealth)}, page{}
	if query.Has(parameterNamespace) {
		if err := checkNamespace(s.namespace); err != nil {
			return s, p, err
		}
	}
	if query.Has(parameterHealth) && !slices.Contains(healthWords, s.health) {
		return s, p, failParameter(query, parameterHealth, "must be "+strings.Join(healthWords, ", "))
	}
	var err error
	if s.labels, err = labels.Parse(query.Get(parameterLabelSelector)); err != nil {
		return s, p, failParameter(query, parameterLabelSelector, "must be a label selector: "+err.Error())
	}
	if text := query.Get(parameterLimit); query.Has(parameterLimit) {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit > maxLimit {
			return s, p, failParameter(query, parameterLimit, fmt.Sprintf("must be a number from 0 to %d, where 0 asks for all", maxLimit))
		}
		p.limit = int(limit)
	}
	if text := query.Get(parameterContinue); text != "" {
		var c continuation
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, &c) != nil {
			return s, p, failParameter(query, parameterContinue, "must be metadata.continue of the page before")
		}
		if c.Query != identityOf(query) {
			return s, p, failParameter(query, parameterContinue, "must be of a list with the same namespace, labelSelector and health; list from the start without it")
		}
		p.after = c.After
	}
	return s, p, nil
}

// failParameter says what is wrong with the value of a parameter.
func failParameter(query url.Values, name, rule string) error {
	return failf(http.StatusBadRequest, "query parameter %q has the value %s; it %s", name, quote(query.Get(name)), rule)
}

// identityOf identifies the list that a query asks for, whichever page of it that is.
func identityOf(query url.Values) string {
	return tagOf([]byte(url.Values{
		parameterNamespace: query[parameterNamespace], parameterLabelSelector: query[parameterLabelSelector], parameterHealth: query[parameterHealth],
	}.Encode()))
}

func mayList(_ *http.Request, query url.Values) (Access, error) {
	about, _, err := listOf(query)
	return Access{Verb: verbList, Namespace: about.namespace}, err
}

// listed returns the scopes that a stream of a list is about.
func listed(_ *http.Request, query url.Values) (selection, error) {
	for _, name := range []string{parameterLimit, parameterContinue} {
		if query.Has(name) {
			return selection{}, failParameter(query, name, "cannot be together with watch=true: a stream has no pages")
		}
	}
	about, _, err := listOf(query)
	return about, err
}

func (h *handler) mayGet(r *http.Request, query url.Values) (Access, error) {
	about, err := h.named(r, query)
	return Access{Verb: verbGet, Namespace: about.namespace, Name: about.name}, err
}

// named returns the scope that a path names.
func (h *handler) named(r *http.Request, _ url.Values) (selection, error) {
	s := selection{namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	if !inPath(r) {
		s.namespace = h.defaultNamespace
	}
	if err := checkNamespace(s.namespace); err != nil {
		return s, err
	}
	return s, checkScopeName(s.name)
}

// inPath reports whether the path of a scope names its namespace.
func inPath(r *http.Request) bool { return strings.Contains(r.Pattern, "{namespace}") }

// list answers with all scopes of a query.
func (h *handler) list(ctx context.Context, _ *http.Request, query url.Values) (answer, error) {
	about, _, err := listOf(query)
	if err != nil {
		return answer{}, err
	}
	list, err := h.selected(ctx, about)
	return answer{document: list, text: list.text, lasting: true}, err
}

// listPage answers with one page of the scopes of a query.
func (h *handler) listPage(ctx context.Context, r *http.Request, query url.Values) (answer, error) {
	about, part, err := listOf(query)
	if err != nil {
		return answer{}, err
	}
	list, err := h.selected(ctx, about)
	if err != nil {
		return answer{}, err
	}
	document := ScopePage{ScopeList: list}
	if part.after != (ScopeName{}) {
		document.Items = slices.DeleteFunc(document.Items, func(item ScopeItem) bool { return item.scopeName().compare(part.after) <= 0 })
	}
	a := answer{lasting: true}
	if rest := len(document.Items) - part.limit; part.limit > 0 && rest > 0 {
		document.Items = document.Items[:part.limit]
		token, err := json.Marshal(continuation{After: document.Items[part.limit-1].scopeName(), Query: identityOf(query)})
		if err != nil {
			return answer{}, fmt.Errorf("cannot encode the token of the next page: %w", err)
		}
		document.Metadata = ListMetadata{Continue: base64.RawURLEncoding.EncodeToString(token), RemainingItemCount: rest}
		query.Set(parameterContinue, document.Metadata.Continue)
		a.next = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	}
	a.document, a.text = document, document.text
	return a, nil
}

// selected reads the scopes of a selection.
func (h *handler) selected(ctx context.Context, about selection) (ScopeList, error) {
	where := "all namespaces"
	if about.namespace != "" {
		where = fmt.Sprintf("namespace %q", about.namespace)
	}
	if err := h.current(); err != nil {
		return ScopeList{}, failf(http.StatusServiceUnavailable, "cannot say how the HealthScopes of %s are now: %w", where, err)
	}
	scopes, err := h.scopes.List(ctx, about.namespace)
	if err != nil {
		return ScopeList{}, failf(http.StatusServiceUnavailable, "cannot list the HealthScopes of %s: %w", where, err)
	}
	return newScopeList(scopes, about), nil
}

func (h *handler) get(ctx context.Context, r *http.Request, query url.Values) (answer, error) {
	about, err := h.named(r, query)
	if err != nil {
		return answer{}, err
	}
	if err := h.current(); err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot say how HealthScope %q in namespace %q is now: %w", about.name, about.namespace, err)
	}
	found, err := h.scopes.Get(ctx, about.namespace, about.name)
	if apierrors.IsNotFound(err) {
		where := fmt.Sprintf("in namespace %q", about.namespace)
		if !inPath(r) {
			where += ", the default one; /scopes/{namespace}/{name} looks in another"
		}
		return answer{}, failf(http.StatusNotFound, "there is no HealthScope %q %s", about.name, where)
	}
	if err != nil {
		return answer{}, failf(http.StatusServiceUnavailable, "cannot get HealthScope %q in namespace %q: %w", about.name, about.namespace, err)
	}
	document := NewScope(found)
	return answer{document: document, text: document.text, lasting: true}, nil
}
