package scope

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// addMissingBundles adds the bundles of an app that are missing in the clusters where the app is expected: those of references
// into every cluster, if the app has no bundle in the cluster or the reference leads nowhere at all. For an app without such
// references, the missing bundle has the app's name. References that name a cluster, and references to other objects, are not
// expected in other clusters.
func (g *gatherer) addMissingBundles(app *gatheredApp) {
	everywhere, clusters := app.refsIntoAllClusters(), g.clustersOfApp(app)
	for _, found := range everywhere {
		nowhere := found.empty()
		for _, cluster := range g.scope.Spec.ExpectedClusters {
			missing := len(found.bundles) == 0 && g.wasMissing(app.Name, bundleResult(cluster, g.scope.Namespace, found.ref.Name).Key)
			if nowhere || missing || !slices.Contains(clusters, cluster) || app.Name == "" && !found.isIn(cluster) {
				found.results = append(found.results, g.missingBundleResult(app, cluster, found.ref.Name, fmt.Sprintf("ResourceBundleState %q", found.ref.Name)))
			}
		}
	}
	if len(everywhere) > 0 || !app.expectsBundle() {
		return
	}
	for _, cluster := range g.scope.Spec.ExpectedClusters {
		if !slices.Contains(clusters, cluster) {
			g.add(app, bundleReference(app.Name, cluster), g.missingBundleResult(app, cluster, app.Name, "a bundle of the app"))
		}
	}
}

// expectsBundle reports whether an app without references to bundles has bundles all the same: it is in the spec, with a name, and does
// not refer to other objects alone.
func (a *gatheredApp) expectsBundle() bool {
	return !a.byLabel && a.Name != "" && (a.Selector != nil || len(a.WorkloadReferences) == 0)
}

func (g *gatherer) missingBundleResult(app *gatheredApp, cluster, name, what string) healthscope.Result {
	missing := bundleResult(cluster, g.scope.Namespace, name)
	if r, excluded := g.excludedResult(app, missing); excluded {
		return r
	}
	missing.Message = fmt.Sprintf("%s is not in cluster %q, where it is expected", what, cluster)
	return g.missingResult(missing)
}

// refsIntoAllClusters returns the findings of an app's references to bundles that lead into every cluster.
func (a *gatheredApp) refsIntoAllClusters() []*finding {
	return slices.DeleteFunc(slices.Clone(a.bundleRefs), func(f *finding) bool { return f.ref.Cluster != "" })
}

func (f *finding) isIn(cluster string) bool {
	return slices.ContainsFunc(f.bundles, func(b *fleet.Bundle) bool { return b.Cluster == cluster }) ||
		slices.ContainsFunc(f.results, func(r healthscope.Result) bool { return r.Cluster == cluster })
}

// clustersOfApp returns the clusters in which an app has bundles, or had bundles according to the scope's status, sorted.
func (g *gatherer) clustersOfApp(app *gatheredApp) []string {
	clusters := sets.New[string]()
	for f := range g.findingsOf(app) {
		clusters.Insert(f.partial...)
		for _, b := range f.bundles {
			clusters.Insert(b.Cluster)
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}
