package commands

import (
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
	if subject == "" {
		return target{kind: targetScopes}, nil
	}
	t := target{names: strings.Split(subject, "/")}
	switch provider, cluster, isCluster := strings.Cut(subject, "+"); {
	case len(t.names) == 4:
		t.kind = targetGroup
	case len(t.names) == 1 && isCluster:
		t.kind, t.names = targetCluster, []string{provider, cluster}
	case len(t.names) <= 2 && !isCluster:
		t.kind = targetScope
	default:
		return target{}, invalidSubject(subject)
	}
	if slices.Contains(t.names, "") || slices.ContainsFunc(t.names, func(name string) bool { return name == "." || name == ".." }) {
		return target{}, invalidSubject(subject)
	}
	return t, nil
}

func invalidSubject(subject string) error {
	return errors.Errorf("%q is no subject: it must be PROJECT/COMPOSITE-APP/VERSION/GROUP, PROVIDER+CLUSTER, NAMESPACE/NAME or NAME", subject)
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

// cannot returns an error with what cannot be done with the status of the target. A printError cannot be printed, whatever the verb.
func (t target) cannot(verb string, err error) error {
	if errors.As(err, new(printError)) {
		verb = "print"
	}
	return errors.Wrapf(err, "cannot %s the status of %s", verb, t)
}

// name returns the name of a scope.
func (t target) name() string { return t.names[len(t.names)-1] }

// isDocument reports whether the target is served as a status document.
func (t target) isDocument() bool { return t.kind == targetGroup || t.kind == targetCluster }

// path returns the segments of the target's path on the server.
func (t target) path() []string {
	switch t.kind {
	case targetScope:
		return append([]string{"scopes"}, t.names...)
	case targetGroup:
		return []string{"v2", "projects", t.names[0], "composite-apps", t.names[1], t.names[2], "deployment-intent-groups", t.names[3], "status"}
	case targetCluster:
		return []string{"v2", "cluster-providers", t.names[0], "clusters", t.names[1], "status"}
	case targetScopes:
	}
	return []string{"scopes"}
}
