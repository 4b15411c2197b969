package recorder

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// placeOf returns the place at which a bundle of a cluster with these labels is saved, or false if the labels name none.
func placeOf(cluster string, labels map[string]string) (appcontext.AppInCluster, bool) {
	id, app, ok := strings.Cut(labels[k8spluginv1alpha1.LabelDeploymentID], "-")
	return appcontext.AppInCluster{ContextID: id, App: app, Cluster: cluster}, ok && id != "" && app != ""
}

// candidates returns the bundles of a place. The first is the one to save: the bundle that is saved already, if it still
// exists, otherwise a bundle with the name that EMCO gives it.
func candidates(p appcontext.AppInCluster, view bundles, saved *appcontext.SavedBundle) []*fleet.Bundle {
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
	found := view.ListByLabelIn(p.Cluster, k8spluginv1alpha1.LabelDeploymentID, name)
	slices.SortFunc(found, func(a, b *fleet.Bundle) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b.BundleKey))
	})
	return found
}

// index holds a record for each place. It is safe for concurrent use.
type index struct {
	mu      sync.Mutex
	records map[appcontext.AppInCluster]record
}

// record is the state of a place between reconciles.
type record struct {
	state state
	// saved is true if a bundle is saved at the place.
	saved    bool
	coWriter coWriter
}

func newIndex() *index { return &index{records: map[appcontext.AppInCluster]record{}} }

// get returns the record of a place.
func (x *index) get(p appcontext.AppInCluster) record {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.records[p]
}

// replace replaces the record of a place, and returns the previous one.
func (x *index) replace(p appcontext.AppInCluster, now record) (before record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before = x.records[p]
	if now == (record{}) {
		delete(x.records, p)
	} else {
		x.records[p] = now
	}
	return before
}

// saved returns the places of the matching clusters at which a bundle is saved.
func (x *index) saved(match func(cluster string) bool) []appcontext.AppInCluster {
	x.mu.Lock()
	defer x.mu.Unlock()
	var places []appcontext.AppInCluster
	for p, r := range x.records {
		if r.saved && match(p.Cluster) {
			places = append(places, p)
		}
	}
	return places
}

// counts returns the number of places in each state.
func (x *index) counts() map[state]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[state]int{}
	for _, r := range x.records {
		if r.state != stateNone {
			counts[r.state]++
		}
	}
	return counts
}
