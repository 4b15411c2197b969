package recorder

import (
	"cmp"
	"maps"
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

// candidates returns the bundles of a place, the one first that is to be saved: as long as it exists the one that is saved,
// then one whose name is that which EMCO gives it.
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

// index remembers how it stands with each place. It is safe for concurrent use.
type index struct {
	mu sync.Mutex
	// saved are the places, by cluster, at which we have saved something.
	saved  map[string]map[appcontext.Place]struct{}
	states map[appcontext.Place]state
	rivals map[appcontext.Place]rival
}

func newIndex() *index {
	return &index{
		saved:  map[string]map[appcontext.Place]struct{}{},
		states: map[appcontext.Place]state{},
		rivals: map[appcontext.Place]rival{},
	}
}

// record notes how it stands with a place, and whether we have saved something there, and returns how it stood before.
func (x *index) record(p appcontext.Place, now state, saved bool, r rival) (before state) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before = x.states[p]
	if now == stateNone {
		delete(x.states, p)
	} else {
		x.states[p] = now
	}
	if r == (rival{}) {
		delete(x.rivals, p)
	} else {
		x.rivals[p] = r
	}
	x.note(p, saved)
	return before
}

// note notes whether we have saved something at a place. The caller holds the lock.
func (x *index) note(p appcontext.Place, saved bool) {
	switch {
	case saved && x.saved[p.Cluster] == nil:
		x.saved[p.Cluster] = map[appcontext.Place]struct{}{p: {}}
	case saved:
		x.saved[p.Cluster][p] = struct{}{}
	default:
		delete(x.saved[p.Cluster], p)
		if len(x.saved[p.Cluster]) == 0 {
			delete(x.saved, p.Cluster)
		}
	}
}

// found notes a place at which we have saved something.
func (x *index) found(p appcontext.Place) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.note(p, true)
}

// savedIn returns the places of a cluster at which we have saved something.
func (x *index) savedIn(cluster string) []appcontext.Place {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.saved[cluster]))
}

// allSaved returns the places of all clusters at which we have saved something.
func (x *index) allSaved() []appcontext.Place {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []appcontext.Place
	for _, places := range x.saved {
		all = slices.AppendSeq(all, maps.Keys(places))
	}
	return all
}

// rival returns what is remembered of somebody else who saves the bundle of a place.
func (x *index) rival(p appcontext.Place) rival {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rivals[p]
}

// counts returns how many places there are in each state.
func (x *index) counts() map[state]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[state]int{}
	for _, s := range x.states {
		counts[s]++
	}
	return counts
}
