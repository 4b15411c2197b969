package scope

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/fleet"
)

// dependency is something that the health of a scope depends on: the object with a name, the objects with a label, or with
// neither all objects of a kind. Without a kind, it is the state of a cluster.
type dependency struct {
	// Kind has no cluster for bundles: a scope depends on those of all clusters.
	fleet.Kind
	namespace, name string
	// label is key=value, or anyLabel.
	label string
}

// anyLabel is the label of dependencies whose selectors do not require one value of a label.
const anyLabel = "*"

// bundlesOfAllClusters stands for the bundles in dependencies, which do not depend on the cluster of a bundle.
var bundlesOfAllClusters = fleet.Kind{GroupVersionKind: bundleKind}

func clusterDependency(name string) dependency { return dependency{Kind: fleet.Kind{Cluster: name}} }

// dependencies are those of one scope. A dependency by label holds selectors; an object with the label must match one of them.
type dependencies map[dependency][]labels.Selector

func (l dependencies) addNamed(kind fleet.Kind, namespace, name string) {
	l[dependency{Kind: kind}], l[dependency{Kind: kind, namespace: namespace, name: name}] = nil, nil
}

func (l dependencies) addSelected(kind fleet.Kind, namespace string, selector labels.Selector) {
	l[dependency{Kind: kind}] = nil
	at := dependency{Kind: kind, namespace: namespace, label: anyLabel}
	if key, value, ok := fleet.RequiredLabel(selector); ok {
		at.label = labelKey(key, value)
	}
	if !slices.ContainsFunc(l[at], func(s labels.Selector) bool { return s.String() == selector.String() }) {
		l[at] = append(l[at], selector)
	}
}

// kinds returns the kinds that must be watched.
func (l dependencies) kinds() map[fleet.Kind]struct{} {
	kinds := map[fleet.Kind]struct{}{}
	for at := range l {
		if at.Kind != bundlesOfAllClusters && at != clusterDependency(at.Cluster) {
			kinds[at.Kind] = struct{}{}
		}
	}
	return kinds
}

// dependencyIndex finds the scopes that depend on an object, kind or cluster. It is safe for concurrent use.
type dependencyIndex struct {
	mu         sync.Mutex
	byScope    map[types.NamespacedName]dependencies
	dependents map[dependency][]types.NamespacedName
}

func newDependencyIndex() *dependencyIndex {
	return &dependencyIndex{byScope: map[types.NamespacedName]dependencies{}, dependents: map[dependency][]types.NamespacedName{}}
}

// set replaces the dependencies of a scope, and reports whether one of them is new.
func (l *dependencyIndex) set(scope types.NamespacedName, what dependencies) (grew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.byScope[scope]
	for at := range before {
		if _, still := what[at]; still {
			continue
		}
		l.dependents[at] = slices.DeleteFunc(l.dependents[at], func(s types.NamespacedName) bool { return s == scope })
		if len(l.dependents[at]) == 0 {
			delete(l.dependents, at)
		}
	}
	same := func(a, b labels.Selector) bool { return a.String() == b.String() }
	for at, selectors := range what {
		was, known := before[at]
		if !known {
			l.dependents[at] = append(l.dependents[at], scope)
		}
		grew = grew || !known || !slices.EqualFunc(was, selectors, same)
	}
	if l.byScope[scope] = what; len(what) == 0 {
		delete(l.byScope, scope)
	}
	return grew
}

// affected returns the scopes that a change affects; a scope may be in the list more than once.
func (l *dependencyIndex) affected(c fleet.Change) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c := c.(type) {
	case fleet.ClusterChange:
		return slices.Clone(l.dependents[clusterDependency(c.Cluster)])
	case fleet.KindChange:
		return slices.Clone(l.dependents[dependency{Kind: c.Kind}])
	case fleet.BundleChange:
		return l.affectedByObject(bundlesOfAllClusters, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, c.Labels)
	case fleet.ObjectChange:
		return l.affectedByObject(c.Kind, c.Name, c.Labels)
	}
	return nil
}

// affectedByObject returns the scopes that depend on an object. The caller holds mu.
func (l *dependencyIndex) affectedByObject(kind fleet.Kind, name types.NamespacedName, set fleet.LabelSet) []types.NamespacedName {
	found := slices.Clone(l.dependents[dependency{Kind: kind, namespace: name.Namespace, name: name.Name}])
	selected := func(label string) {
		at := dependency{Kind: kind, namespace: name.Namespace, label: label}
		for _, scope := range l.dependents[at] {
			if slices.ContainsFunc(l.byScope[scope][at], func(s labels.Selector) bool { return s.Matches(set) }) {
				found = append(found, scope)
			}
		}
	}
	selected(anyLabel)
	for key, value := range set.All() {
		selected(labelKey(key, value))
	}
	return found
}

func labelKey(key, value string) string { return key + "=" + value }
