package recorder

import (
	"cmp"
	"slices"
	"strings"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// placeOf returns the place at which a bundle of a cluster with these labels is saved, or false if the labels name none.
func placeOf(cluster string, labels map[string]string) (appcontext.AppInCluster, bool) {
	id, app, ok := strings.Cut(labels[k8spluginv1alpha1.LabelDeploymentID], "-")
	return appcontext.AppInCluster{ContextID: id, App: app, Cluster: cluster}, ok && id != "" && app != ""
}

// bundles is the part of fleet.View that findBundles uses.
type bundles interface {
	State(cluster string) (fleet.ClusterState, bool)
	CompleteFor(cluster, namespace string) bool
	ListByLabelIn(cluster, key, value string) []*fleet.Bundle
}

// findBundles looks up the bundles of a place. The one to save is the bundle that is saved already, if it still exists, otherwise a bundle
// with the name that EMCO gives it. A bundle that is not found does not exist only if the view was complete before and after
// the lookup: in between, a namespace may be added to the view, or removed with its bundles.
func (s *input) findBundles(view bundles) {
	p, saved := s.stored.Place, s.stored.Saved
	name := p.ContextID + "-" + p.App
	rank := func(b *fleet.Bundle) int {
		switch {
		case saved != nil && b.Namespace == saved.Namespace && b.Name == saved.Name:
			return 0
		case b.Name == name:
			return 1
		}
		return 2
	}
	complete := func() bool { return saved != nil && view.CompleteFor(p.Cluster, saved.Namespace) }
	before := complete()
	if found := view.ListByLabelIn(p.Cluster, k8spluginv1alpha1.LabelDeploymentID, name); len(found) > 0 {
		s.bundle = slices.MinFunc(found, func(a, b *fleet.Bundle) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b.BundleKey))
		})
		s.duplicates = len(found) - 1
	}
	_, s.known = view.State(p.Cluster)
	s.complete = before && complete()
}
