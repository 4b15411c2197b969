package aai

import (
	"net/url"
	"strings"
)

// scopesPath is where the status REST API has the scopes.
const scopesPath = "/scopes"

// ScopeSelflink returns where the status REST API at a base URL serves a scope: <base>/scopes/<namespace>/<name>.
func ScopeSelflink(base, namespace, name string) string {
	return strings.TrimRight(base, "/") + scopesPath + path(namespace, name)
}

// ScopesSelflink returns where the status REST API at a base URL serves the scopes of a namespace, or with an empty one of all.
func ScopesSelflink(base, namespace string) string {
	link := strings.TrimRight(base, "/") + scopesPath
	if namespace == "" {
		return link
	}
	return link + "?namespace=" + Escape(namespace)
}

// ScopeNamespace returns the namespace of the scope that a document was written for, whatever the base of its selflink. It returns false when the document was written for none, or its selflink is not one of ours.
func (d Document) ScopeNamespace() (namespace string, ok bool) {
	link, _, _ := strings.Cut(d.Selflink, "?")
	segments := strings.Split(link, "/")
	n := len(segments)
	if n < 3 || "/"+segments[n-3] != scopesPath || segments[n-1] == "" {
		return "", false
	}
	namespace, err := url.PathUnescape(segments[n-2])
	return namespace, err == nil && namespace != ""
}
