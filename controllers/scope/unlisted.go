package scope

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// Unlisted counts resources of a scope that have no name there, because their bundle
// does not name them. They count in its health; no roll-up can ignore them, and one that is also referred to by name counts twice.
type Unlisted struct {
	// App is the app of the scope they belong to.
	App string
	// Cluster is the cluster they are in.
	Cluster string
	// Summary counts them by the state that their bundle gives them.
	Summary healthscope.Summary
}

// placeUnlisted counts the resources that the bundles of findings do not name. Each bundle counts once, in the first app
// that leads to it. The findings must be sorted by app.
func placeUnlisted(findings []finding) []Unlisted {
	placed := map[appCluster]healthscope.Summary{}
	seen := map[fleet.BundleKey]struct{}{}
	for _, f := range findings {
		for key, unlisted := range f.unlisted {
			if _, ok := seen[key]; !ok {
				seen[key] = struct{}{}
				at := appCluster{f.app, key.Cluster}
				placed[at] = sum(placed[at], unlisted)
			}
		}
	}
	var all []Unlisted
	for at, s := range placed {
		all = append(all, Unlisted{App: at.app, Cluster: at.cluster, Summary: s})
	}
	slices.SortFunc(all, func(a, b Unlisted) int {
		return cmp.Or(strings.Compare(a.App, b.App), strings.Compare(a.Cluster, b.Cluster))
	})
	return all
}

// appCluster is an app in a cluster.
type appCluster struct{ app, cluster string }

// counts returns the numbers of members that contribute and of unlisted ones, by the app in which they count and their cluster.
func (v *judgement) counts() map[appCluster]healthscope.Summary {
	counts := map[appCluster]healthscope.Summary{}
	for _, p := range v.members {
		if p.Contributes() {
			at := appCluster{p.App, p.Cluster}
			n := counts[at]
			n.Add(*p.Member)
			counts[at] = n
		}
	}
	for _, u := range v.unlisted {
		at := appCluster{u.App, u.Cluster}
		counts[at] = sum(counts[at], u.Summary)
	}
	return counts
}

// partialIn returns the clusters in which the bundles of findings do not name all resources: they are truncated, malformed,
// not filled, or have not been read since the hub started. A cluster that is not known any more is not among them.
func partialIn(findings []finding) []string {
	clusters := map[string]struct{}{}
	for _, f := range findings {
		for _, cluster := range f.partial {
			clusters[cluster] = struct{}{}
		}
		for _, r := range f.results {
			if r.Kind == k8spluginv1alpha1.ResourceBundleStateKind && r.State == healthscope.Unknown && r.Reason != healthscope.ReasonUnknownCluster {
				clusters[r.Cluster] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// unlistedOf counts the resources that the bundles of an app do not name, each bundle once, and those that are carried over for the app.
func (v *judgement) unlistedOf(app string) healthscope.Summary {
	bundles := map[fleet.BundleKey]healthscope.Summary{}
	for _, r := range v.refs {
		if r.app == app {
			maps.Copy(bundles, r.unlisted)
		}
	}
	all := sumOf(bundles)
	for _, u := range v.carriedOver {
		if u.App == app {
			all = sum(all, u.Summary)
		}
	}
	return all
}

// sumOf adds up the counts of several bundles.
func sumOf(bundles map[fleet.BundleKey]healthscope.Summary) healthscope.Summary {
	var all healthscope.Summary
	for _, s := range bundles {
		all = sum(all, s)
	}
	return all
}

// sum adds two counts.
func sum(a, b healthscope.Summary) healthscope.Summary {
	return healthscope.Summary{
		Total: a.Total + b.Total, Ready: a.Ready + b.Ready, Pending: a.Pending + b.Pending, Failed: a.Failed + b.Failed,
		Unknown: a.Unknown + b.Unknown, Healthy: a.Healthy + b.Healthy,
	}
}
