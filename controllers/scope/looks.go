package scope

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// look is something that a scope looks at, so that a change of it concerns the scope: the object with a name, the objects
// with a label, or with neither all objects of a kind. Without a kind, it is the state of a cluster.
type look struct {
	// Kind has no cluster for bundles, which are looked at in all clusters.
	fleet.Kind
	namespace, name string
	// label is key=value, or anyLabel.
	label string
}

// anyLabel is the label of looks whose selectors do not require a label with one value.
const anyLabel = "*"

var bundlesKind = fleet.Kind{GroupVersionKind: k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)}

// lookAtCluster is the look at the state of a cluster.
func lookAtCluster(name string) look { return look{Kind: fleet.Kind{Cluster: name}} }

// looks are what a scope looks at. A look by label has the selectors that objects with the label must match, one of them.
type looks map[look][]labels.Selector

// addNamed adds the object with a name.
func (l looks) addNamed(kind fleet.Kind, namespace, name string) {
	l[look{Kind: kind}], l[look{Kind: kind, namespace: namespace, name: name}] = nil, nil
}

// addSelected adds the objects that a selector matches.
func (l looks) addSelected(kind fleet.Kind, namespace string, selector labels.Selector) {
	l[look{Kind: kind}] = nil
	at := look{Kind: kind, namespace: namespace, label: anyLabel}
	if key, value, ok := fleet.RequiredLabel(selector); ok {
		at.label = labelKey(key, value)
	}
	if !slices.ContainsFunc(l[at], func(s labels.Selector) bool { return s.String() == selector.String() }) {
		l[at] = append(l[at], selector)
	}
}

// kinds returns the kinds that must be watched.
func (l looks) kinds() map[fleet.Kind]struct{} {
	kinds := map[fleet.Kind]struct{}{}
	for at := range l {
		if at.Kind != bundlesKind && at != lookAtCluster(at.Cluster) {
			kinds[at.Kind] = struct{}{}
		}
	}
	return kinds
}

// lookers are the scopes by what they look at. It is safe for concurrent use.
type lookers struct {
	mu sync.Mutex
	of map[types.NamespacedName]looks
	by map[look][]types.NamespacedName
}

func newLookers() *lookers {
	return &lookers{of: map[types.NamespacedName]looks{}, by: map[look][]types.NamespacedName{}}
}

// set sets what a scope looks at, in place of what it looked at before, and reports whether something is new.
func (l *lookers) set(scope types.NamespacedName, what looks) (grew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.of[scope]
	for at := range before {
		if _, still := what[at]; still {
			continue
		}
		l.by[at] = slices.DeleteFunc(l.by[at], func(s types.NamespacedName) bool { return s == scope })
		if len(l.by[at]) == 0 {
			delete(l.by, at)
		}
	}
	same := func(a, b labels.Selector) bool { return a.String() == b.String() }
	for at, selectors := range what {
		was, known := before[at]
		if !known {
			l.by[at] = append(l.by[at], scope)
		}
		grew = grew || !known || !slices.EqualFunc(was, selectors, same)
	}
	if l.of[scope] = what; len(what) == 0 {
		delete(l.of, scope)
	}
	return grew
}

// changed returns the scopes that a change concerns, one of them perhaps more than once.
func (l *lookers) changed(c fleet.Change) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c := c.(type) {
	case fleet.ClusterChange:
		return slices.Clone(l.by[lookAtCluster(c.Cluster)])
	case fleet.KindChange:
		return slices.Clone(l.by[look{Kind: c.Kind}])
	case fleet.BundleChange:
		return l.object(bundlesKind, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, c.Labels)
	case fleet.ObjectChange:
		return l.object(c.Kind, c.Name, c.Labels)
	}
	return nil
}

// object returns the scopes that look at an object. The caller holds the lock.
func (l *lookers) object(kind fleet.Kind, name types.NamespacedName, set fleet.LabelSet) []types.NamespacedName {
	found := slices.Clone(l.by[look{Kind: kind, namespace: name.Namespace, name: name.Name}])
	selected := func(label string) {
		at := look{Kind: kind, namespace: name.Namespace, label: label}
		for _, scope := range l.by[at] {
			if slices.ContainsFunc(l.of[scope][at], func(s labels.Selector) bool { return s.Matches(set) }) {
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
