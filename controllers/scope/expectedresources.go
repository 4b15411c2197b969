package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// addMissingResources adds the resources that an app must have and that no finding has.
func (g *gatherer) addMissingResources(app *gatheredApp) {
	required := g.requiredByContexts(app)
	if len(app.ExpectedResources)+len(required) == 0 {
		return
	}
	has := g.resourcesOf(app)
	for _, e := range app.ExpectedResources {
		for _, cluster := range g.expectedClustersOf(app, e) {
			g.addIfMissing(app, has, healthscope.Key{Cluster: cluster, Group: e.Group, Kind: e.Kind, Namespace: g.scope.Namespace, Name: e.Name}, true)
		}
	}
	for _, key := range required {
		g.addIfMissing(app, has, key, false)
	}
}

// addIfMissing adds a resource that an app must have, unless a finding has it. If it is not certain whether the resource exists,
// it is Unknown if the spec names it; otherwise it is left out, because the bundle itself is Unknown.
func (g *gatherer) addIfMissing(app *gatheredApp, has map[healthscope.Key]bool, key healthscope.Key, inSpec bool) {
	ofCluster := key
	ofCluster.Namespace = ""
	if has[key] || has[ofCluster] || g.mayBeUnlisted(app, key.Cluster) {
		return
	}
	r := g.unmetResult(app, healthscope.Result{Key: key})
	if _, unreadable := g.unreadable(key.Cluster); !inSpec && r.State == healthscope.Unknown && !unreadable {
		return
	}
	has[key] = true // It may be expected twice.
	g.add(app, corev1alpha2.WorkloadReference{Kind: key.Kind, Name: key.Name, Cluster: key.Cluster}, r)
}

// requiredByContexts returns the resources that the AppContexts of an app's bundles require and the bundles do not name. If a
// reference leads into every cluster, this includes clusters without such a bundle whose bundles are all known.
func (g *gatherer) requiredByContexts(app *gatheredApp) []healthscope.Key {
	if g.contexts == nil {
		return nil
	}
	everywhere := map[string]bool{}
	for key := range app.bundles {
		everywhere[key.Name] = false
	}
	for _, i := range g.refsIntoAllClusters(app) {
		everywhere[g.out.findings[i].ref.Name] = true
	}
	var required []healthscope.Key
	for _, name := range slices.Sorted(maps.Keys(everywhere)) {
		members := map[string][]healthscope.Member{}
		for _, b := range g.bundlesNamed(name) {
			if _, ok := app.bundles[b.BundleKey]; ok {
				members[b.Cluster] = b.Members
			}
		}
		missing, reading := g.contexts.Missing(name, g.scope.Namespace, members)
		if !reading.IsZero() {
			g.waitSince(reading)
		}
		for _, key := range missing {
			if _, ok := members[key.Cluster]; ok || everywhere[name] && g.selectsCluster(app, key.Cluster) && g.isComplete(key.Cluster) {
				required = append(required, key)
			}
		}
	}
	return required
}

// isComplete reports whether the bundles of the scope's namespace in a cluster are, or were, all known.
func (g *gatherer) isComplete(cluster string) bool {
	_, unreadable := g.unreadable(cluster)
	return unreadable || g.isKnown(cluster) && g.view.CompleteFor(cluster, g.scope.Namespace)
}

// resourcesOf returns the keys of all resources that have been found for an app, in any state.
func (g *gatherer) resourcesOf(app *gatheredApp) map[healthscope.Key]bool {
	has := map[healthscope.Key]bool{}
	for f := range g.findingsOf(app) {
		for _, m := range f.members {
			has[m.Key] = true
		}
		for _, r := range f.results {
			has[r.Key] = true
		}
	}
	return has
}

// expectedClustersOf returns the clusters that a resource is expected in, in the order of the spec or else sorted.
func (g *gatherer) expectedClustersOf(app *gatheredApp, e corev1alpha2.ExpectedResource) []string {
	if e.Cluster != "" {
		return []string{e.Cluster}
	}
	if expected := g.scope.Spec.ExpectedClusters; len(expected) > 0 {
		return expected
	}
	if clusters := g.clustersOfApp(app); len(clusters) > 0 {
		return clusters
	}
	return []string{g.view.Cluster()}
}

// mayBeUnlisted reports whether an expected resource may be among those that an app's bundles in an unreadable cluster do not name.
func (g *gatherer) mayBeUnlisted(app *gatheredApp, cluster string) bool {
	if _, unreadable := g.unreadable(cluster); !unreadable {
		return false
	}
	for f := range g.findingsOf(app) {
		if slices.Contains(f.partial, cluster) {
			return true
		}
	}
	return false
}

// unmetResult returns the result of a resource that no finding has: it is missing, or it is not certain whether it exists.
func (g *gatherer) unmetResult(app *gatheredApp, r healthscope.Result) healthscope.Result {
	if unmet, excluded := g.excludedResult(app, r); excluded {
		return unmet
	}
	if _, unreadable := g.unreadable(r.Cluster); unreadable {
		return g.missingResult(r)
	}
	for f := range g.findingsOf(app) {
		if slices.Contains(f.partial, r.Cluster) {
			return unknownFor(r, healthscope.ReasonNotListed, "the app's bundle in cluster %q has no room to name all its resources", r.Cluster)
		}
		for _, b := range f.results { // The contents of a bundle that is not filled or is malformed are not known.
			if b.Cluster == r.Cluster && b.Group == bundleKind.Group && b.Kind == bundleKind.Kind && b.State == healthscope.Unknown {
				return unknownFor(r, b.Reason, "ResourceBundleState %q: %s", b.Name, cmp.Or(b.Message, string(b.Reason)))
			}
		}
	}
	r.Message = fmt.Sprintf("%s %q is expected in cluster %q and not there", r.Kind, r.Name, r.Cluster)
	return g.missingResult(r)
}
