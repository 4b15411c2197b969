package scope

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// selectsCluster reports whether an app takes bundles from a known cluster. It uses the current state, and not the one from the
// start of gathering, because the labels of a cluster are known before its bundles are shown.
func (g *gatherer) selectsCluster(app *gatheredApp, cluster string) bool {
	if g.scope.Spec.Clusters == nil && app.Clusters == nil {
		return true
	}
	state, _ := g.view.State(cluster)
	return isSelected(g.scope.Spec.Clusters, state) && isSelected(app.Clusters, state)
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

// checkSelection adds the problems of a selection of clusters: a selector that cannot be read, and names that the hub does not know.
// An app may run in a cluster of such a name without being seen.
func (g *gatherer) checkSelection(app *gatheredApp, field string, selection *corev1alpha2.ClusterSelection) {
	if selection == nil {
		return
	}
	for _, name := range selection.Names {
		if _, known := g.clusterState(name); !known {
			g.add(app, corev1alpha2.WorkloadReference{}, unknownClusterResult(healthscope.Result{Key: healthscope.Key{Cluster: name, Kind: kindCluster, Name: name}}))
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(selection.Selector); err != nil {
		g.addBadSelectorf(app, field, "the selector in %s cannot be read: %v", field, err)
	}
}

func (g *gatherer) addBadSelectorf(app *gatheredApp, name, format string, args ...any) {
	selector := healthscope.Result{Key: healthscope.Key{Kind: "Selector", Namespace: g.scope.Namespace, Name: name}}
	g.add(app, corev1alpha2.WorkloadReference{}, unknownFor(selector, healthscope.ReasonInvalidReference, format, args...))
}
