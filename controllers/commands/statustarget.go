package commands

import (
	"net/url"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// targetKind is the kind of a target.
type targetKind int

// The kinds of targets.
const (
	targetScopes targetKind = iota
	targetScope
	targetGroup
	targetCluster
)

// target is the subject of the command status.
type target struct {
	kind targetKind
	// names are the parts of the target's name. For a list of scopes they are the namespace, or empty for all namespaces.
	names []string
}

// parseTarget parses the subject of the command status.
func parseTarget(subject string) (target, error) {
	t := target{names: strings.Split(subject, "/")}
	provider, cluster, isCluster := strings.Cut(subject, "+")
	switch {
	case subject == "":
		return target{kind: targetScopes}, nil
	case len(t.names) == 4:
		t.kind = targetGroup
	case len(t.names) == 1 && isCluster:
		t.kind, t.names = targetCluster, []string{provider, cluster}
	case len(t.names) <= 2 && !isCluster:
		t.kind = targetScope
	default:
		t.names = nil
	}
	invalid := func(name string) bool { return name == "" || name == "." || name == ".." }
	if len(t.names) == 0 || slices.ContainsFunc(t.names, invalid) {
		return target{}, errors.Errorf("%q is no subject: it must be PROJECT/COMPOSITE-APP/VERSION/GROUP, PROVIDER+CLUSTER, NAMESPACE/NAME or NAME", subject)
	}
	return t, nil
}

// String describes the target for messages.
func (t target) String() string {
	switch t.kind {
	case targetScope:
		return "HealthScope " + strings.Join(t.names, "/")
	case targetGroup:
		return "deployment intent group " + strings.Join(t.names, "/")
	case targetCluster:
		return "cluster " + strings.Join(t.names, "+")
	case targetScopes:
	}
	if len(t.names) > 0 {
		return "the HealthScopes in namespace " + t.names[0]
	}
	return "all HealthScopes"
}

// inNamespace returns the target with a namespace, unless the target has one already or is a document. An empty namespace changes nothing.
func (t target) inNamespace(namespace string) target {
	if namespace == "" || t.isDocument() || len(t.names) > 1 {
		return t
	}
	return target{kind: t.kind, names: append([]string{namespace}, t.names...)}
}

// name returns the name of a scope.
func (t target) name() string { return t.names[len(t.names)-1] }

// isDocument reports whether the target is served as a status document.
func (t target) isDocument() bool { return t.kind == targetGroup || t.kind == targetCluster }

// path returns the segments of the target's path on the server, as they stand in a URL.
func (t target) path() []string {
	path := append([]string{"scopes"}, t.names...)
	switch t.kind {
	case targetScopes:
		path = path[:1]
	case targetScope:
	case targetGroup:
		path = []string{"v2", "projects", t.names[0], "composite-apps", t.names[1], t.names[2], "deployment-intent-groups", t.names[3], "status"}
	case targetCluster:
		path = []string{"v2", "cluster-providers", t.names[0], "clusters", t.names[1], "status"}
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	return path
}
