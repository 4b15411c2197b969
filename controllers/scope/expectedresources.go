package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// Contexts returns the resources that must be in clusters because the AppContexts of bundles have deployed them there.
type Contexts interface {
	// Missing returns what the context of a bundle with a name, <id>-<app>, has brought into the app's clusters and what the
	// bundles of that name in a namespace, whose members are given by cluster, should name and do not. It does not wait for etcd. While the
	// context is being read for the first time, it returns since when.
	Missing(bundle, namespace string, members map[string][]healthscope.Member) (missing []healthscope.Key, reading time.Time)
	// Subscribe calls changed for each bundle that Missing was asked about and for which there may be another answer. changed must not block.
	Subscribe(changed func(bundle types.NamespacedName))
}

// addMissingResources adds the resources that an app must have and that no finding has, or may have in an unreadable cluster.
// If it is not certain whether a resource exists, it is Unknown if the spec names it; otherwise it is left out, because the
// bundle itself is Unknown.
func (g *gatherer) addMissingResources(a *app) {
	required := g.requiredByContexts(a)
	if len(a.ExpectedResources)+len(required) == 0 {
		return
	}
	has := g.resourcesOf(a)
	add := func(key healthscope.Key, inSpec bool) {
		ofCluster := key
		ofCluster.Namespace = ""
		_, unreadable := g.unreadable(key.Cluster)
		if has.HasAny(key, ofCluster) || unreadable && g.isPartial(a, key.Cluster) {
			return
		}
		r := g.unmetResult(a, healthscope.Result{Key: key})
		if !inSpec && r.State == healthscope.Unknown && !unreadable {
			return
		}
		has.Insert(key) // It may be expected twice.
		g.add(a, reference{WorkloadReference: corev1alpha2.WorkloadReference{Kind: key.Kind, Name: key.Name, Cluster: key.Cluster}}, r)
	}
	for _, e := range a.ExpectedResources {
		for _, cluster := range g.expectedClustersOf(a, e) {
			add(healthscope.Key{Cluster: cluster, Group: e.Group, Kind: e.Kind, Namespace: g.scope.Namespace, Name: e.Name}, true)
		}
	}
	for _, key := range required {
		add(key, false)
	}
}

// requiredByContexts returns the resources that the AppContexts of an app's bundles require and the bundles do not name. If a
// reference leads into every cluster, this includes clusters without such a bundle whose bundles are all known.
func (g *gatherer) requiredByContexts(a *app) (required []healthscope.Key) {
	if g.contexts == nil {
		return nil
	}
	members := map[string]map[string][]healthscope.Member{} // By the name of the bundles, and their cluster.
	everywhere := sets.New[string]()
	for _, f := range a.refsIntoAllClusters() {
		everywhere.Insert(f.ref.Name)
		members[f.ref.Name] = map[string][]healthscope.Member{}
	}
	for key, b := range a.bundles {
		if members[key.Name] == nil {
			members[key.Name] = map[string][]healthscope.Member{}
		}
		members[key.Name][key.Cluster] = b.Members
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		g.dependOnBundle(name) // Contexts reports changes by this name.
		missing, reading := g.contexts.Missing(name, g.scope.Namespace, members[name])
		if !reading.IsZero() {
			g.waitSince(reading, false)
		}
		for _, key := range missing {
			if _, ok := members[name][key.Cluster]; ok || everywhere.Has(name) && g.selectsCluster(a, key.Cluster) && g.isComplete(key.Cluster) {
				required = append(required, key)
			}
		}
	}
	return required
}

// isComplete reports whether the bundles of the scope's namespace in a cluster are, or were, all known.
func (g *gatherer) isComplete(cluster string) bool {
	s, known := g.clusterState(cluster)
	return known && (!s.Answers() || g.view.CompleteFor(cluster, g.scope.Namespace))
}

// expectedClustersOf returns the clusters that a resource is expected in, in the order of the spec or else sorted.
func (g *gatherer) expectedClustersOf(a *app, e corev1alpha2.ExpectedResource) []string {
	if e.Cluster != "" {
		return []string{e.Cluster}
	}
	if expected := g.scope.Spec.ExpectedClusters; len(expected) > 0 {
		return expected
	}
	if clusters := g.clustersOfApp(a); len(clusters) > 0 {
		return clusters
	}
	return []string{g.view.Cluster()}
}

// unmetResult returns the result of a resource that no finding has: it is missing, or it is not certain whether it exists.
func (g *gatherer) unmetResult(a *app, r healthscope.Result) healthscope.Result {
	r.Message = fmt.Sprintf("%s %q is expected in cluster %q and not there", r.Kind, r.Name, r.Cluster)
	r = g.absentIn(a, r)
	if r.State != healthscope.NotPresent {
		return r
	}
	if g.isPartial(a, r.Cluster) {
		return unknownFor(r, healthscope.ReasonNotListed, "the app's bundle in cluster %q has no room to name all its resources", r.Cluster)
	}
	for f := range g.findingsOf(a) {
		for _, b := range f.results { // The contents of a bundle that is not filled or is malformed are not known.
			if b.Cluster == r.Cluster && b.Group == bundleKind.Group && b.Kind == bundleKind.Kind && b.State == healthscope.Unknown {
				return unknownFor(r, b.Reason, "ResourceBundleState %q: %s", b.Name, cmp.Or(b.Message, string(b.Reason)))
			}
		}
	}
	return r
}

// isPartial reports whether an app may have more resources in a cluster than those that have been found.
func (g *gatherer) isPartial(a *app, cluster string) bool {
	for f := range g.findingsOf(a) {
		if slices.Contains(f.partial, cluster) {
			return true
		}
	}
	return false
}
