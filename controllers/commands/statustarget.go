package commands

import (
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// targetKind is what a status is of.
type targetKind int

// The kinds of targets.
const (
	ofScopes targetKind = iota
	ofScope
	ofGroup
	ofCluster
)

// target is what the command status asks about.
type target struct {
	kind targetKind
	// names are the parts of its name; of many scopes their namespace, or nothing for all.
	names []string
}

// targetOf reads the subject of the command status.
func targetOf(subject string) (target, error) {
	if subject == "" {
		return target{kind: ofScopes}, nil
	}
	t := target{names: strings.Split(subject, "/")}
	switch provider, cluster, isCluster := strings.Cut(subject, "+"); {
	case len(t.names) == 4:
		t.kind = ofGroup
	case len(t.names) == 1 && isCluster:
		t.kind, t.names = ofCluster, []string{provider, cluster}
	case len(t.names) <= 2 && !isCluster:
		t.kind = ofScope
	default:
		return target{}, badSubject(subject)
	}
	if slices.Contains(t.names, "") || slices.ContainsFunc(t.names, func(name string) bool { return name == "." || name == ".." }) {
		return target{}, badSubject(subject)
	}
	return t, nil
}

func badSubject(subject string) error {
	return errors.Errorf("%q is no subject: it must be PROJECT/COMPOSITE-APP/VERSION/GROUP, PROVIDER+CLUSTER, NAMESPACE/NAME or NAME", subject)
}

// String says for people what the target is.
func (t target) String() string {
	switch t.kind {
	case ofScope:
		return "HealthScope " + strings.Join(t.names, "/")
	case ofGroup:
		return "deployment intent group " + strings.Join(t.names, "/")
	case ofCluster:
		return "cluster " + strings.Join(t.names, "+")
	case ofScopes:
	}
	if len(t.names) > 0 {
		return "the HealthScopes in namespace " + t.names[0]
	}
	return "all HealthScopes"
}

// in returns the target in a namespace: a scope, unless it names its own, or those of a namespace. Empty stands for all namespaces.
func (t target) in(namespace string) target {
	if namespace == "" || t.isDocument() || len(t.names) > 1 {
		return t
	}
	return target{kind: t.kind, names: append([]string{namespace}, t.names...)}
}

// namespace returns the namespace of scopes; empty for all.
func (t target) namespace() string {
	if len(t.names) == 0 {
		return ""
	}
	return t.names[0]
}

// name returns the name of a scope.
func (t target) name() string { return t.names[len(t.names)-1] }

// isDocument reports whether the answer is a status document.
func (t target) isDocument() bool { return t.kind == ofGroup || t.kind == ofCluster }

// path returns the path of the target on the server, in parts.
func (t target) path() []string {
	switch t.kind {
	case ofScope:
		return append([]string{"scopes"}, t.names...)
	case ofGroup:
		return []string{"v2", "projects", t.names[0], "composite-apps", t.names[1], t.names[2], "deployment-intent-groups", t.names[3], "status"}
	case ofCluster:
		return []string{"v2", "cluster-providers", t.names[0], "clusters", t.names[1], "status"}
	case ofScopes:
	}
	return []string{"scopes"}
}
