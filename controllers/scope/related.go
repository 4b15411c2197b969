package scope

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	selectionop "k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxFollowed is how far from a workload its resources are followed, and theirs.
	maxFollowed = 3
	// maxRelated bounds how many objects one reference leads to.
	maxRelated = 50
)

// version is what the versions of one component have in common.
type version struct{ application, component string }

// versionOf returns of what component an object is a version; the zero value when it is none.
func versionOf(set labels.Labels) version {
	v := version{set.Get(corev1alpha2.LabelApplication), set.Get(corev1alpha2.LabelComponent)}
	if v.application == "" || v.component == "" {
		return version{}
	}
	return v
}

// related returns the results of a workload, of the other versions of its component, and of what these name in
// status.resources. As in OAM, one that is not healthy is enough for the reference not to be.
func (g *gatherer) related(kind fleet.Kind, found fleet.Lookup) []healthscope.Result {
	seen := map[healthscope.Key]struct{}{found.Result.Key: {}}
	results := g.withResources(kind.Cluster, found, 0, seen)
	for _, other := range g.versions(kind, versionOf(found.Labels)) {
		if _, again := seen[other.Result.Key]; !again {
			seen[other.Result.Key] = struct{}{}
			results = append(results, g.withResources(kind.Cluster, other, 0, seen)...)
		}
	}
	return results
}

// versions returns the workloads of a kind that are versions of a component.
func (g *gatherer) versions(kind fleet.Kind, of version) []fleet.Lookup {
	if of == (version{}) {
		return nil
	}
	g.out.looks.addSelected(kind, g.scope.Namespace, of.selector())
	if _, read := g.versionsOf[kind]; !read {
		g.versionsOf[kind] = map[version][]fleet.Lookup{}
		all := g.selection(kind.Cluster, kind.GroupVersionKind, g.scope.Namespace, isVersion)
		for _, l := range all.Objects {
			v := versionOf(l.Labels)
			g.versionsOf[kind][v] = append(g.versionsOf[kind][v], l)
		}
	}
	return g.versionsOf[kind][of]
}

// selector returns the selector of the versions.
func (v version) selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{corev1alpha2.LabelApplication: v.application, corev1alpha2.LabelComponent: v.component})
}

// isVersion selects what has the labels of versionOf.
var isVersion = func() labels.Selector {
	selector := labels.NewSelector()
	for _, key := range []string{corev1alpha2.LabelApplication, corev1alpha2.LabelComponent} {
		exists, err := labels.NewRequirement(key, selectionop.Exists, nil)
		if err != nil {
			panic(err) // The keys are constants.
		}
		selector = selector.Add(*exists)
	}
	return selector
}()

// withResources returns the results of an object and of what it names in status.resources, of which seen has what has been found
// already. An object of which no rule can tell anything is as these are.
func (g *gatherer) withResources(cluster string, found fleet.Lookup, depth int, seen map[healthscope.Key]struct{}) []healthscope.Result {
	own := found.Result
	switch {
	case found.Named == 0:
		return []healthscope.Result{own}
	case depth >= maxFollowed, found.Named > len(found.Resources), len(seen)+found.Named > maxRelated:
		return []healthscope.Result{unknownFor(own, healthscope.ReasonNoRule, "status.resources leads to more objects than are followed: it names %d", found.Named)}
	case own.State == healthscope.Unknown && own.Reason == healthscope.ReasonNoRule:
		own.State, own.Reason, own.Message = healthscope.Ready, healthscope.ReasonExists, fmt.Sprintf("it is as the objects in status.resources, of which there are %d", found.Named)
	}
	results := []healthscope.Result{own}
	for _, r := range found.Resources {
		gvk, problem := parseRef(g.scope.Namespace, corev1alpha2.WorkloadReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Cluster: cluster})
		if problem != nil {
			results = append(results, *problem)
			continue
		}
		key := healthscope.Key{Cluster: cluster, Group: gvk.Group, Kind: gvk.Kind, Namespace: g.scope.Namespace, Name: r.Name}
		if _, again := seen[key]; again {
			continue
		}
		seen[key] = struct{}{}
		kind := fleet.Kind{Cluster: cluster, GroupVersionKind: gvk}
		results = append(results, g.withResources(cluster, g.object(kind, types.NamespacedName{Namespace: g.scope.Namespace, Name: r.Name}), depth+1, seen)...)
	}
	return results
}

// object returns what is known of an object, and awaits it while it is being read for the first time.
func (g *gatherer) object(kind fleet.Kind, name types.NamespacedName) fleet.Lookup {
	unknown := resultOf(kind, name.Namespace, name.Name)
	if !g.follows(kind.GroupVersionKind) {
		return fleet.Lookup{Result: tooManyKinds(unknown)}
	}
	g.out.looks.addNamed(kind, name.Namespace, name.Name)
	state, known := g.state(kind.Cluster)
	if !known {
		return fleet.Lookup{Result: inUnknownCluster(unknown)}
	}
	found := g.lookup(kind.Cluster, kind.GroupVersionKind, name)
	if state.Reachability == fleet.Connecting {
		g.await(kind.Cluster)
		return fleet.Lookup{Result: unreadableResult(unknown, state, "")}
	}
	g.awaitKind(found)
	return found
}

// follows reports whether the scope follows objects of a kind: of those that it leads to, the first maxKinds.
func (g *gatherer) follows(gvk schema.GroupVersionKind) bool {
	if len(g.followed) < maxKinds {
		g.followed.Insert(gvk)
	}
	return g.followed.Has(gvk)
}
