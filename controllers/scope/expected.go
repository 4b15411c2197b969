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
	for _, i := range app.everywhere {
		found := &g.out.findings[i]
		nowhere := found.empty()
		for _, cluster := range g.scope.Spec.ExpectedClusters {
			missing := found.nothing && g.saidMissing(app.name, bundleResult(cluster, g.scope.Namespace, found.ref.Name).Key)
			if nowhere || missing || !app.isIn(cluster) || app.name == "" && !found.isIn(cluster) {
				found.results = append(found.results, g.expectedIn(app, cluster, found.ref.Name, fmt.Sprintf("ResourceBundleState %q", found.ref.Name)))
			}
		}
	}
	if len(app.everywhere) == 0 && !app.byLabel && app.name != "" && (app.selector != nil || len(app.refs) == 0) {
		g.expectedByName(app)
	}
}

// expectedByName adds what is missing of an app that no reference speaks of.
func (g *gatherer) expectedByName(app *gatheredApp) {
	for _, cluster := range g.scope.Spec.ExpectedClusters {
		if !app.isIn(cluster) {
			g.add(app, bundleReference(app.name, cluster), g.expectedIn(app, cluster, app.name, "a bundle of the app"))
		}
	}
}

// expectedIn says that a bundle is missing in a cluster.
func (g *gatherer) expectedIn(app *gatheredApp, cluster, name, what string) healthscope.Result {
	missing := bundleResult(cluster, g.scope.Namespace, name)
	switch {
	case !g.known(cluster):
		return inUnknownCluster(missing)
	case !g.takesFrom(app, cluster):
		return excluded(missing)
	}
	missing.Message = fmt.Sprintf("%s is not in cluster %q, where it is expected", what, cluster)
	return g.missing(missing)
}

// isIn says whether something has been found in a cluster, or is said of it.
func (s *finding) isIn(cluster string) bool {
	return slices.Contains(s.clusters, cluster) || slices.ContainsFunc(s.results, func(r healthscope.Result) bool { return r.Cluster == cluster })
}

// isIn says whether the app has a bundle in a cluster.
func (a *gatheredApp) isIn(cluster string) bool {
	for key := range a.bundles {
		if key.Cluster == cluster {
			return true
		}
	}
	return false
}
