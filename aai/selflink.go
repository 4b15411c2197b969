package aai

import (
	"net/url"
	"strings"
)

// scopesPath is the path of the scopes in the status REST API.
const scopesPath = "/scopes"

// ScopeSelflink returns the URL at which the status REST API at a base URL serves a scope: <base>/scopes/<namespace>/<name>.
func ScopeSelflink(base, namespace, name string) string {
	return strings.TrimRight(base, "/") + scopesPath + path(namespace, name)
}

// ScopesSelflink returns the URL at which the status REST API at a base URL serves the scopes of a namespace, or of all namespaces if namespace is empty.
func ScopesSelflink(base, namespace string) string {
	link := strings.TrimRight(base, "/") + scopesPath
	if namespace == "" {
		return link
	}
	return link + "?namespace=" + Escape(namespace)
}

// ScopeNamespace returns the namespace of the scope for which a document was written, whatever the base URL of its selflink. It returns false when the document was written for no scope, or its selflink does not have the form of ScopeSelflink.
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
