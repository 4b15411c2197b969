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

// Contexts returns which resources must be in clusters because the AppContexts of bundles have brought them there.
type Contexts interface {
	// Missing returns what the context of a bundle with a name, <id>-<app>, has brought into the app's clusters and what the
	// bundles of that name in a namespace, whose members are given by cluster, should name and do not. It does not wait for etcd. While the
	// context is being read for the first time, it returns since when.
	Missing(bundle, namespace string, members map[string][]healthscope.Member) (missing []healthscope.Key, reading time.Time)
	// Subscribe calls changed for each bundle that Missing was asked about and for which there may be another answer. changed must not block.
	Subscribe(changed func(bundle types.NamespacedName))
}

// expectedResources adds those resources that an app must have and that nothing has led to.
func (g *gatherer) expectedResources(app *gatheredApp) {
	required := g.required(app)
	if len(app.ExpectedResources)+len(required) == 0 {
		return
	}
	has := g.resourcesOf(app)
	for _, e := range app.ExpectedResources {
		for _, cluster := range g.clustersOf(app, e) {
			g.expect(app, has, healthscope.Key{Cluster: cluster, Group: e.Group, Kind: e.Kind, Namespace: g.scope.Namespace, Name: e.Name}, true)
		}
	}
	for _, key := range required {
		g.expect(app, has, key, false)
	}
}

// expect adds a resource that an app must have, unless something has led to it. When it is not certain whether it exists, it
// is Unknown if the spec names it; otherwise it is left out, because the bundle itself is Unknown.
func (g *gatherer) expect(app *gatheredApp, has map[healthscope.Key]bool, key healthscope.Key, named bool) {
	ofCluster := key
	ofCluster.Namespace = ""
	if has[key] || has[ofCluster] || g.isUnlisted(app, key.Cluster) {
		return
	}
	r := g.unmet(app, healthscope.Result{Key: key})
	if _, unseen := g.unreadable(key.Cluster); !named && r.State == healthscope.Unknown && !unseen {
		return
	}
	has[key] = true // It may be expected twice.
	g.add(app, corev1alpha2.WorkloadReference{Kind: key.Kind, Name: key.Name, Cluster: key.Cluster}, r)
}

// required returns what the AppContexts of an app's bundles require and their bundles do not name. Where a reference leads
// into every cluster, this includes clusters in which there is no such bundle, if it would be known.
func (g *gatherer) required(app *gatheredApp) []healthscope.Key {
	if g.contexts == nil {
		return nil
	}
	everywhere := map[string]bool{}
	for key := range app.bundles {
		everywhere[key.Name] = false
	}
	for _, i := range g.everywhere(app) {
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
			g.waitFor(reading)
		}
		for _, key := range missing {
			if _, ok := members[key.Cluster]; ok || everywhere[name] && g.takesFrom(app, key.Cluster) && g.isComplete(key.Cluster) {
				required = append(required, key)
			}
		}
	}
	return required
}

// isComplete reports whether the bundles of the scope's namespace in a cluster are, or were, all known.
func (g *gatherer) isComplete(cluster string) bool {
	_, unseen := g.unreadable(cluster)
	return unseen || g.known(cluster) && g.bundles.CompleteFor(cluster, g.scope.Namespace)
}

// resourcesOf returns all that has been found for an app, whatever its state.
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

// clustersOf returns the clusters that a resource is expected in, sorted where the spec does not say in which order.
func (g *gatherer) clustersOf(app *gatheredApp, e corev1alpha2.ExpectedResource) []string {
	if e.Cluster != "" {
		return []string{e.Cluster}
	}
	if expected := g.scope.Spec.ExpectedClusters; len(expected) > 0 {
		return expected
	}
	if clusters := g.clustersWith(app); len(clusters) > 0 {
		return clusters
	}
	return []string{g.bundles.Cluster()}
}

// isUnlisted reports whether bundles of an app in a cluster that cannot be read do not name all resources: one that is
// expected may be among the others.
func (g *gatherer) isUnlisted(app *gatheredApp, cluster string) bool {
	if _, unseen := g.unreadable(cluster); !unseen {
		return false
	}
	for f := range g.findingsOf(app) {
		if slices.Contains(f.partial, cluster) {
			return true
		}
	}
	return false
}

// unmet returns the result of a resource that nothing has led to: it is missing, or it is not certain whether it exists.
func (g *gatherer) unmet(app *gatheredApp, r healthscope.Result) healthscope.Result {
	if unmet, cannot := g.cannotBeIn(app, r); cannot {
		return unmet
	}
	if _, unseen := g.unreadable(r.Cluster); unseen {
		return g.missing(r)
	}
	for f := range g.findingsOf(app) {
		if slices.Contains(f.partial, r.Cluster) {
			return unknownFor(r, healthscope.ReasonNotListed, "the app's bundle in cluster %q has no room to name all its resources", r.Cluster)
		}
		for _, b := range f.results { // A bundle that is not filled or is malformed does not tell what is in it.
			if b.Cluster == r.Cluster && b.Group == bundleKind.Group && b.Kind == bundleKind.Kind && b.State == healthscope.Unknown {
				return unknownFor(r, b.Reason, "ResourceBundleState %q: %s", b.Name, cmp.Or(b.Message, string(b.Reason)))
			}
		}
	}
	r.Message = fmt.Sprintf("%s %q is expected in cluster %q and not there", r.Kind, r.Name, r.Cluster)
	return g.missing(r)
}
