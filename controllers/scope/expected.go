package scope

import (
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// expected adds what is missing in the clusters that an app is expected in:
// the app's references into every cluster, where the app has no bundle or the
// reference leads nowhere at all. For an app without such references the missing
// bundle is called by the app's name. References that name a cluster, and those to
// other objects, are expected where they say and nowhere else.
func (g *gatherer) expected(app *gatheredApp) {
	everywhere, clusters := g.everywhere(app), g.clustersWith(app)
	for _, i := range everywhere {
		found := &g.out.findings[i]
		nowhere := found.empty()
		for _, cluster := range g.scope.Spec.ExpectedClusters {
			missing := len(found.clusters) == 0 && g.wasMissing(app.Name, bundleResult(cluster, g.scope.Namespace, found.ref.Name).Key)
			if nowhere || missing || !slices.Contains(clusters, cluster) || app.Name == "" && !found.isIn(cluster) {
				found.results = append(found.results, g.expectedIn(app, cluster, found.ref.Name, fmt.Sprintf("ResourceBundleState %q", found.ref.Name)))
			}
		}
	}
	if len(everywhere) == 0 && !app.byLabel && app.Name != "" && (app.Selector != nil || len(app.WorkloadReferences) == 0) {
		g.expectedByName(app, clusters)
	}
}

// expectedByName adds what is missing of an app without such references; in are the clusters where it has bundles.
func (g *gatherer) expectedByName(app *gatheredApp, in []string) {
	for _, cluster := range g.scope.Spec.ExpectedClusters {
		if !slices.Contains(in, cluster) {
			g.add(app, bundleReference(app.Name, cluster), g.expectedIn(app, cluster, app.Name, "a bundle of the app"))
		}
	}
}

// expectedIn returns the result of a bundle that is missing in a cluster.
func (g *gatherer) expectedIn(app *gatheredApp, cluster, name, what string) healthscope.Result {
	missing := bundleResult(cluster, g.scope.Namespace, name)
	if r, cannot := g.cannotBeIn(app, missing); cannot {
		return r
	}
	missing.Message = fmt.Sprintf("%s is not in cluster %q, where it is expected", what, cluster)
	return g.missing(missing)
}

// everywhere returns those findings of an app, by index, whose references to bundles lead into every cluster.
func (g *gatherer) everywhere(app *gatheredApp) []int {
	return slices.DeleteFunc(slices.Clone(app.bundleRefs), func(i int) bool { return g.out.findings[i].ref.Cluster != "" })
}

// isIn reports whether a finding has a bundle or a result in a cluster.
func (s *finding) isIn(cluster string) bool {
	return slices.Contains(s.clusters, cluster) || slices.ContainsFunc(s.results, func(r healthscope.Result) bool { return r.Cluster == cluster })
}

// clustersWith returns the clusters in which an app has bundles, or had by the scope's status, sorted.
func (g *gatherer) clustersWith(app *gatheredApp) []string {
	var clusters []string
	for f := range g.findingsOf(app) {
		clusters = append(append(clusters, f.clusters...), f.partial...)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}
