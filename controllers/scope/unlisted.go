package scope

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

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
func placeUnlisted(findings []*finding) []Unlisted {
	placed := map[appCluster]healthscope.Summary{}
	for f, b := range distinctBundles(findings) {
		if b.Unlisted.Total > 0 {
			at := appCluster{f.app, b.Cluster}
			placed[at] = sum(placed[at], b.Unlisted)
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

// distinctBundles returns the bundles of findings, each once, with the first finding that leads to it.
func distinctBundles(findings []*finding) iter.Seq2[*finding, *fleet.Bundle] {
	return func(yield func(*finding, *fleet.Bundle) bool) {
		seen := map[fleet.BundleKey]struct{}{}
		for _, f := range findings {
			for _, b := range f.bundles {
				if _, again := seen[b.BundleKey]; again {
					continue
				}
				seen[b.BundleKey] = struct{}{}
				if !yield(f, b) {
					return
				}
			}
		}
	}
}

// unlisted counts the resources that the bundles of a finding do not name.
func (f *finding) unlisted() (all healthscope.Summary) {
	for _, b := range f.bundles {
		all = sum(all, b.Unlisted)
	}
	return all
}

// appCluster is an app in a cluster.
type appCluster struct{ app, cluster string }

// counts returns the numbers of members that contribute and of unlisted ones, by the app in which they count and their cluster.
func (v *judgement) counts() map[appCluster]healthscope.Summary {
	counts := map[appCluster]healthscope.Summary{}
	for _, p := range v.Members {
		if p.Contributes() {
			at := appCluster{p.App, p.Cluster}
			n := counts[at]
			n.Add(*p.Member)
			counts[at] = n
		}
	}
	for _, u := range v.Unlisted {
		at := appCluster{u.App, u.Cluster}
		counts[at] = sum(counts[at], u.Summary)
	}
	return counts
}

// partialIn returns the clusters in which the bundles of findings do not name all resources: they are truncated, malformed,
// not filled, or have not been read since the hub started. A cluster that is not known any more is not among them.
func partialIn(findings []*finding) []string {
	clusters := sets.New[string]()
	for _, f := range findings {
		clusters.Insert(f.partial...)
		for _, r := range f.results {
			if r.Kind == k8spluginv1alpha1.ResourceBundleStateKind && r.State == healthscope.Unknown && r.Reason != healthscope.ReasonUnknownCluster {
				clusters.Insert(r.Cluster)
			}
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// unlistedOf counts the resources that the bundles of an app do not name, each bundle once, and those that are carried over for the app.
func (v *judgement) unlistedOf(app string) (all healthscope.Summary) {
	var findings []*finding
	for _, r := range v.refs {
		if r.app == app {
			findings = append(findings, r.finding)
		}
	}
	for _, b := range distinctBundles(findings) {
		all = sum(all, b.Unlisted)
	}
	for _, u := range v.carriedOver {
		if u.App == app {
			all = sum(all, u.Summary)
		}
	}
	return all
}

func sum(a, b healthscope.Summary) healthscope.Summary {
	return healthscope.Summary{
		Total: a.Total + b.Total, Ready: a.Ready + b.Ready, Pending: a.Pending + b.Pending, Failed: a.Failed + b.Failed,
		Unknown: a.Unknown + b.Unknown, Healthy: a.Healthy + b.Healthy,
	}
}
