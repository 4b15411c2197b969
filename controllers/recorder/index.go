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

// placeOf returns the place at which a bundle of a cluster with these labels is saved; false when they name none.
func placeOf(cluster string, labels map[string]string) (appcontext.Place, bool) {
	id, app, ok := strings.Cut(labels[k8spluginv1alpha1.LabelDeploymentID], "-")
	return appcontext.Place{ContextID: id, App: app, Cluster: cluster}, ok && id != "" && app != ""
}

// candidates returns the bundles of a place. The first is the one to be saved: the one that is saved already, as long as it
// exists, else one that has the name that EMCO gives it.
func candidates(p appcontext.Place, view bundles, saved *appcontext.SavedBundle) []*fleet.Bundle {
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
	found := view.LabelledIn(p.Cluster, k8spluginv1alpha1.LabelDeploymentID, name)
	slices.SortFunc(found, func(a, b *fleet.Bundle) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b.BundleKey))
	})
	return found
}

// index holds a record for each place. It is safe for concurrent use.
type index struct {
	mu     sync.Mutex
	places map[appcontext.Place]record
}

// record is what is known of a place between reconciles.
type record struct {
	state state
	// saved is true when this hub has saved something there.
	saved    bool
	coWriter coWriter
}

func newIndex() *index { return &index{places: map[appcontext.Place]record{}} }

// get returns the record of a place.
func (x *index) get(p appcontext.Place) record {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.places[p]
}

// replace replaces the record of a place, and returns the one before.
func (x *index) replace(p appcontext.Place, now record) (before record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before = x.places[p]
	if now == (record{}) {
		delete(x.places, p)
	} else {
		x.places[p] = now
	}
	return before
}

// saved returns the places at which something is saved, of all clusters that match.
func (x *index) saved(match func(cluster string) bool) []appcontext.Place {
	x.mu.Lock()
	defer x.mu.Unlock()
	var places []appcontext.Place
	for p, r := range x.places {
		if r.saved && match(p.Cluster) {
			places = append(places, p)
		}
	}
	return places
}

// counts returns how many places there are in each state.
func (x *index) counts() map[state]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[state]int{}
	for _, r := range x.places {
		if r.state != stateNone {
			counts[r.state]++
		}
	}
	return counts
}
