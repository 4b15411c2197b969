package scope

import (
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// addMissingBundles adds the bundles of an app that are missing in the clusters where
// the app is expected: those of references into every cluster, if the app has no bundle
// in the cluster or the reference leads nowhere at all. For an app without such references,
// the missing bundle has the app's name. References that name a cluster, and references to
// other objects, are not expected in other clusters.
func (g *gatherer) addMissingBundles(app *gatheredApp) {
	everywhere, clusters := g.refsIntoAllClusters(app), g.clustersOfApp(app)
	for _, i := range everywhere {
		found := &g.out.findings[i]
		nowhere := found.empty()
		for _, cluster := range g.scope.Spec.ExpectedClusters {
			missing := len(found.clusters) == 0 && g.wasMissing(app.Name, bundleResult(cluster, g.scope.Namespace, found.ref.Name).Key)
			if nowhere || missing || !slices.Contains(clusters, cluster) || app.Name == "" && !found.isIn(cluster) {
				found.results = append(found.results, g.missingBundleResult(app, cluster, found.ref.Name, fmt.Sprintf("ResourceBundleState %q", found.ref.Name)))
			}
		}
	}
	if len(everywhere) == 0 && !app.byLabel && app.Name != "" && (app.Selector != nil || len(app.WorkloadReferences) == 0) {
		g.addMissingBundlesByName(app, clusters)
	}
}

// addMissingBundlesByName adds the missing bundles of an app without such references. in are the clusters where it has bundles.
func (g *gatherer) addMissingBundlesByName(app *gatheredApp, in []string) {
	for _, cluster := range g.scope.Spec.ExpectedClusters {
		if !slices.Contains(in, cluster) {
			g.add(app, bundleReference(app.Name, cluster), g.missingBundleResult(app, cluster, app.Name, "a bundle of the app"))
		}
	}
}

// missingBundleResult returns the result of a bundle that is missing in a cluster.
func (g *gatherer) missingBundleResult(app *gatheredApp, cluster, name, what string) healthscope.Result {
	missing := bundleResult(cluster, g.scope.Namespace, name)
	if r, excluded := g.excludedResult(app, missing); excluded {
		return r
	}
	missing.Message = fmt.Sprintf("%s is not in cluster %q, where it is expected", what, cluster)
	return g.missingResult(missing)
}

// refsIntoAllClusters returns the indexes of the findings of an app whose references to bundles lead into every cluster.
func (g *gatherer) refsIntoAllClusters(app *gatheredApp) []int {
	return slices.DeleteFunc(slices.Clone(app.bundleRefs), func(i int) bool { return g.out.findings[i].ref.Cluster != "" })
}

// isIn reports whether a finding has a bundle or a result in a cluster.
func (f *finding) isIn(cluster string) bool {
	return slices.Contains(f.clusters, cluster) || slices.ContainsFunc(f.results, func(r healthscope.Result) bool { return r.Cluster == cluster })
}

// clustersOfApp returns the clusters in which an app has bundles, or had bundles according to the scope's status, sorted.
func (g *gatherer) clustersOfApp(app *gatheredApp) []string {
	var clusters []string
	for f := range g.findingsOf(app) {
		clusters = append(append(clusters, f.clusters...), f.partial...)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}
