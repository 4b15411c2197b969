package scope

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// gather collects what belongs to the scope: what is there, what the status has of unreadable clusters, and then what is missing.
func (g *gatherer) gather() gathered {
	g.firstSyncs, g.dependencies, g.unreadableAtStart = g.view.FirstSyncs(), dependencies{}, g.view.Unreadable()
	g.followedKinds, g.versions = sets.New[schema.GroupVersionKind](), map[fleet.Kind]map[component][]fleet.Lookup{}
	for gvk := range references(g.scope) { // The kinds of references take precedence over those that objects lead to.
		if gvk.GroupKind() != bundleKind.GroupKind() {
			g.followsKind(gvk)
		}
	}
	g.apps = appsOf(&g.scope.Spec)
	g.checkSelection(g.apps[0], "spec.clusters", g.scope.Spec.Clusters)
	for _, a := range g.apps {
		g.checkSelection(a, fmt.Sprintf("clusters of app %q", a.Name), a.Clusters)
		for _, ref := range a.references {
			g.followRef(a, ref)
		}
		g.addSelectedBundles(a)
		g.addSelectedWorkloads(a)
	}
	g.addLabelledBundles()
	g.addProbed()
	g.carryOver()
	for _, a := range g.apps {
		g.addMissingBundles(a)
	}
	for _, a := range g.apps {
		g.addMissingResources(a)
	}
	for _, a := range g.apps {
		g.addMissingReferences(a)
	}
	g.stale = map[string]fleet.ClusterState{}
	for _, f := range g.findings {
		for _, cluster := range f.clusters() {
			if state, known := g.clusterState(cluster); known && !state.Reachable() {
				g.stale[cluster] = state
			}
		}
	}
	return g.gathered
}

// checkSelection adds the problems of a selection of clusters: a selector that cannot be read, and names that the hub does not know.
// An app may run in a cluster of such a name without being seen.
func (g *gatherer) checkSelection(a *app, field string, selection *corev1alpha2.ClusterSelection) {
	if selection == nil {
		return
	}
	for _, name := range selection.Names {
		if _, known := g.clusterState(name); !known {
			g.add(a, reference{}, unknownClusterResult(healthscope.Result{Key: healthscope.Key{Cluster: name, Kind: kindCluster, Name: name}}))
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(selection.Selector); err != nil {
		g.addBadSelectorf(a, field, "the selector in %s cannot be read: %v", field, err)
	}
}

// followRef adds what a reference of an app leads to.
func (g *gatherer) followRef(a *app, ref reference) {
	gvk, problem := parseRef(g.scope.Namespace, ref.WorkloadReference)
	at := objectKey{fleet.Kind{Cluster: cmp.Or(ref.Cluster, g.view.Cluster()), GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: ref.Name}}
	switch {
	case problem != nil:
		g.add(a, ref, *problem)
	case gvk.GroupKind() == bundleKind.GroupKind():
		g.followBundleRef(a, ref)
	case gvk == kubevela.ApplicationKind:
		g.followApplicationRef(a, ref, at)
	default:
		g.followObjectRef(a, ref, at)
	}
}
