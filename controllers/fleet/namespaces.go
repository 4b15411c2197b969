package fleet

import (
	"slices"
	"strings"
)

// restrict makes the cluster's state and its bundles those of the namespaces that a spec names. What is not shown any more
// has not gone, so the state that says so comes before; and what is shown again comes before the state that says that all is.
func (m *member) restrict(w clusterSpec) {
	limits := m.limits()
	m.state.namespaces = inBoth(m.state.namespaces, limits)
	m.publish()
	m.syncer.restrict(w.reads)
	m.state.namespaces = limits
	m.publish()
}

// inBoth returns the namespaces of two lists of a ClusterState that are in both.
func inBoth(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	both := slices.DeleteFunc(strings.Split(strings.Trim(a, ","), ","), func(namespace string) bool { return !strings.Contains(b, ","+namespace+",") })
	return "," + strings.Join(both, ",") + ","
}

// limits returns the namespaces from which bundles are read, as a ClusterState has them: those of the spec, as far as the
// connection in use reads them.
func (m *member) limits() string {
	namespaces, limited := m.spec.namespaces, len(m.spec.namespaces) > 0
	if m.current != nil && len(m.current.namespaces) > 0 {
		namespaces = slices.DeleteFunc(slices.Clone(m.current.namespaces), func(namespace string) bool { return !m.spec.reads(namespace) })
		limited = true
	}
	if !limited {
		return ""
	}
	return "," + strings.Join(namespaces, ",") + ","
}
