package scope

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxDepth is the number of steps from a workload that status.resources is followed.
	maxDepth = 3
	// maxRelated bounds how many objects one reference leads to.
	maxRelated = 50
)

// componentKey identifies the component that workloads are versions of.
type componentKey struct{ application, component string }

func componentKeyOf(set labels.Labels) componentKey {
	return componentKey{set.Get(corev1alpha2.LabelApplication), set.Get(corev1alpha2.LabelComponent)}
}

// relatedResults returns the results of a workload, of the other versions of its component, and of what these name in
// status.resources. As in OAM, a reference is healthy only if all of them are.
func (g *gatherer) relatedResults(kind fleet.Kind, found fleet.Lookup) []healthscope.Result {
	seen := map[healthscope.Key]struct{}{found.Result.Key: {}}
	results := g.withResources(kind.Cluster, found, 0, seen)
	for _, other := range g.versionsOf(kind, componentKeyOf(found.Labels)) {
		if _, again := seen[other.Result.Key]; !again {
			seen[other.Result.Key] = struct{}{}
			results = append(results, g.withResources(kind.Cluster, other, 0, seen)...)
		}
	}
	return results
}

func (g *gatherer) versionsOf(kind fleet.Kind, of componentKey) []fleet.Lookup {
	if of.application == "" || of.component == "" {
		return nil
	}
	g.out.dependencies.addSelected(kind, g.scope.Namespace, labels.SelectorFromSet(labels.Set{corev1alpha2.LabelApplication: of.application, corev1alpha2.LabelComponent: of.component}))
	if _, read := g.workloadVersions[kind]; !read {
		g.workloadVersions[kind] = map[componentKey][]fleet.Lookup{}
		for _, l := range g.selectObjects(kind.Cluster, kind.GroupVersionKind, g.scope.Namespace, hasComponentLabels).Objects {
			v := componentKeyOf(l.Labels)
			g.workloadVersions[kind][v] = append(g.workloadVersions[kind][v], l)
		}
	}
	return g.workloadVersions[kind][of]
}

// hasComponentLabels selects the objects that have both labels of a componentKey, so that the others are not copied and sorted.
var hasComponentLabels = func() labels.Selector {
	selector, err := labels.Parse(corev1alpha2.LabelApplication + "," + corev1alpha2.LabelComponent)
	if err != nil {
		panic(err) // The labels are constants.
	}
	return selector
}()

// withResources returns the results of an object and of what it names in status.resources, without the objects in seen, to which
// it adds. An object that no rule can judge is Ready, so that only the objects that it names decide.
func (g *gatherer) withResources(cluster string, found fleet.Lookup, depth int, seen map[healthscope.Key]struct{}) []healthscope.Result {
	own := found.Result
	switch {
	case found.Named == 0:
		return []healthscope.Result{own}
	case depth >= maxDepth, found.Named > len(found.Resources), len(seen)+found.Named > maxRelated:
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
		at := objectKey{fleet.Kind{Cluster: cluster, GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: r.Name}}
		results = append(results, g.withResources(cluster, g.object(at), depth+1, seen)...)
	}
	return results
}

// object returns an object, and makes the scope wait while the object is being read for the first time.
func (g *gatherer) object(at objectKey) fleet.Lookup {
	unknown := resultOf(at.Kind, at.Namespace, at.Name)
	if !g.followsKind(at.GroupVersionKind) {
		return fleet.Lookup{Result: tooManyKindsResult(unknown)}
	}
	g.out.dependencies.addNamed(at.Kind, at.Namespace, at.Name)
	state, known := g.clusterState(at.Cluster)
	if !known {
		return fleet.Lookup{Result: unknownClusterResult(unknown)}
	}
	found := g.lookup(at.Cluster, at.GroupVersionKind, at.NamespacedName)
	if state.Reachability == fleet.Connecting {
		g.waitForCluster(at.Cluster)
		return fleet.Lookup{Result: unreadableResult(unknown, state, "")}
	}
	g.waitForKind(found)
	return found
}

// followsKind reports whether the scope follows objects of a kind, which it does for the first maxKinds kinds.
func (g *gatherer) followsKind(gvk schema.GroupVersionKind) bool {
	if len(g.followedKinds) < maxKinds {
		g.followedKinds.Insert(gvk)
	}
	return g.followedKinds.Has(gvk)
}
