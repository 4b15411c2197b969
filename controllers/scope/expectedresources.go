package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// expectedResources adds those resources that an app must have and that nothing has led to.
func (g *gatherer) expectedResources(app *gatheredApp) {
	if len(app.expected) == 0 {
		return
	}
	has := g.resourcesOf(app)
	for _, e := range app.expected {
		for _, cluster := range g.clustersOf(app, e) {
			key := healthscope.Key{Cluster: cluster, Group: e.Group, Kind: e.Kind, Namespace: g.scope.Namespace, Name: e.Name}
			ofCluster := key
			ofCluster.Namespace = ""
			if has[key] || has[ofCluster] || g.isRemembered(app, cluster) {
				continue
			}
			has[key] = true // It may be expected twice.
			g.add(app, corev1alpha2.WorkloadReference{Kind: e.Kind, Name: e.Name, Cluster: cluster}, g.unmet(app, healthscope.Result{Key: key}))
		}
	}
}

// resourcesOf returns all that has been found for an app, whatever its state.
func (g *gatherer) resourcesOf(app *gatheredApp) map[healthscope.Key]bool {
	has := map[healthscope.Key]bool{}
	for _, f := range g.out.findings {
		if f.app != app.name {
			continue
		}
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
	clusters := map[string]struct{}{}
	for key := range app.bundles {
		clusters[key.Cluster] = struct{}{}
	}
	if len(clusters) == 0 {
		return []string{g.bundles.Cluster()}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// isRemembered says whether all that is known of an app in a cluster is what the status remembers: the resource is among it.
func (g *gatherer) isRemembered(app *gatheredApp, cluster string) bool {
	_, unseen := g.unseen(cluster)
	return unseen && slices.ContainsFunc(g.out.findings, func(f finding) bool { return f.app == app.name && slices.Contains(f.partial, cluster) })
}

// unmet says of a resource that nothing has led to that it is missing, or why that is not certain.
func (g *gatherer) unmet(app *gatheredApp, r healthscope.Result) healthscope.Result {
	switch {
	case !g.known(r.Cluster):
		return inUnknownCluster(r)
	case !g.takesFrom(app, r.Cluster):
		return excluded(r)
	}
	if _, unseen := g.unseen(r.Cluster); unseen {
		return g.missing(r)
	}
	bundle := bundleResult("", "", "").Key
	for _, f := range g.out.findings {
		if f.app != app.name {
			continue
		}
		if slices.Contains(f.partial, r.Cluster) {
			r.State, r.Reason = healthscope.Unknown, healthscope.ReasonNotListed
			r.Message = fmt.Sprintf("the app's bundle in cluster %q has no room to name all its resources", r.Cluster)
			return r
		}
		for _, b := range f.results { // A bundle that nobody has filled, or that cannot be read, says nothing of what is in it.
			if b.Cluster == r.Cluster && b.Group == bundle.Group && b.Kind == bundle.Kind && b.State == healthscope.Unknown {
				r.State, r.Reason = healthscope.Unknown, b.Reason
				r.Message = fmt.Sprintf("ResourceBundleState %q: %s", b.Name, cmp.Or(b.Message, string(b.Reason)))
				return r
			}
		}
	}
	r.Message = fmt.Sprintf("%s %q is expected in cluster %q and not there", r.Kind, r.Name, r.Cluster)
	return g.missing(r)
}
