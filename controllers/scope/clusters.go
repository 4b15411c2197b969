package scope

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// connectGrace is how long a scope waits for a cluster that the hub connects to
// for the first time and that the spec or status names, or for a kind that the scope
// refers to there. Without it, each restart of the hub would make every scope unknown
// for a moment. After it, resources that have not been read are Unknown, and all others are judged.
const connectGrace = 20 * time.Second

// firstGrace is the same for a scope that has no status yet and waits for a cluster or kind that does not respond. For a kind whose
// objects are being listed it waits for connectGrace, like other scopes, so that its status is written once.
const firstGrace = 2 * time.Second

// clusterState returns the state of a cluster, and whether the hub knows the cluster.
func (g *gatherer) clusterState(cluster string) (fleet.ClusterState, bool) {
	g.dependencies[clusterDependency(cluster)] = nil
	if s, away := g.unreadableAtStart[cluster]; away {
		return s, true
	}
	return g.view.State(cluster)
}

// unreadable returns the state of a cluster that the hub knows and cannot read, and whether it is one. The scope waits for a
// cluster that the hub connects to for the first time.
func (g *gatherer) unreadable(cluster string) (fleet.ClusterState, bool) {
	s, known := g.clusterState(cluster)
	if known && s.Reachability == fleet.Connecting {
		g.waitSince(s.Since, false)
	}
	return s, known && !s.Answers()
}

// waitForKind makes the scope wait while the objects of a kind are read for the first time.
func (g *gatherer) waitForKind(l fleet.Lookup) {
	if l.Syncing || l.Listing {
		g.waitSince(l.Since, l.Listing)
	}
}

// waitSince makes the scope wait for something that the hub began to read for the first time at since. A scope without a status
// waits for a shorter time, unless it is being delivered: it has no status to keep, and "unknown" is better than none.
func (g *gatherer) waitSince(since time.Time, delivered bool) {
	grace := connectGrace
	if g.scope.Status.ObservedGeneration <= 0 && !delivered {
		grace = firstGrace
	}
	if wait := since.Add(grace).Sub(g.now); wait > 0 {
		g.syncWait = max(g.syncWait, min(wait, grace))
	}
}

// selectedClusters returns the known clusters that an app takes bundles and workloads from.
func (g *gatherer) selectedClusters(a *app) []string {
	return slices.DeleteFunc(g.view.Clusters(), func(cluster string) bool { return !g.selectsCluster(a, cluster) })
}

// selectsCluster reports whether an app takes bundles from a known cluster. It uses the current state, and not the one from the
// start of gathering, because the labels of a cluster are known before its bundles are shown.
func (g *gatherer) selectsCluster(a *app, cluster string) bool {
	if g.scope.Spec.Clusters == nil && a.Clusters == nil {
		return true
	}
	state, _ := g.view.State(cluster)
	return isSelected(g.scope.Spec.Clusters, state) && isSelected(a.Clusters, state)
}

// isSelected reports whether a selection has a cluster; without a selection, every cluster is selected. A member whose
// labels are not known yet is selected by any selector: it has no bundles yet, and its part of the status is carried over.
func isSelected(selection *corev1alpha2.ClusterSelection, s fleet.ClusterState) bool {
	if selection == nil || slices.Contains(selection.Names, s.Name) {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(selection.Selector)
	if err != nil || selection.Selector == nil {
		return false
	}
	labelsKnown := s.Local || s.Labels != "" // The Secret of a member has at least one.
	return !labelsKnown || selector.Matches(s.LabelSet())
}
