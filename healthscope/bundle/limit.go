package bundle

import (
	"cmp"
	"maps"
	"slices"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// cutToLimit makes the status fit a number of bytes: the largest lists go first, then entries of resources.
func cutToLimit(status *k8spluginv1alpha1.ResourceBundleStateStatus, limit int) {
	sizes := make([]int, len(status.Resources))
	entries := 0
	for i := range status.Resources {
		sizes[i] = len(encode(status.Resources[i])) + len(",")
		entries += sizes[i]
	}
	frame := frameSize(*status)
	dropLists(status, func() bool { return frame+entries+listsSize(status) <= limit })
	excess := frame + entries + listsSize(status) - limit
	if excess <= 0 {
		return
	}
	status.Truncated = true
	status.Resources = cutEntries(status.Resources, sizes, excess)
}

// frameSize returns how many bytes a status takes without lists and entries.
func frameSize(status k8spluginv1alpha1.ResourceBundleStateStatus) int {
	status.Truncated, status.Resources = true, nil
	for _, list := range status.Lists() {
		*list = nil
	}
	return len(encode(status)) + len(`"resources":[],`)
}

// cutEntries leaves out entries that take excess bytes together. What is Ready
// goes first, leaves before owners before the unowned; an owner of something
// that is not Ready stays with it. Next go the other leaves, the best state
// first, and in the end what owns them. So an owner never goes while something
// owned stays, which would then count alone. With pods that are not Ready one
// that is stays, for a workload of which a reader sees no working pod looks Failed.
// Of equal entries the last by key goes first.
func cutEntries(entries []k8spluginv1alpha1.ResourceHealth, sizes []int, excess int) []k8spluginv1alpha1.ResourceHealth {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	ranks := ranksOf(entries)
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(b, a))
	})
	cut := make(map[int]bool, len(order))
	for _, i := range order {
		if excess <= 0 {
			break
		}
		cut[i] = true
		excess -= sizes[i]
	}
	kept := make([]k8spluginv1alpha1.ResourceHealth, 0, len(entries)-len(cut))
	for i, entry := range entries {
		if !cut[i] {
			kept = append(kept, entry)
		}
	}
	return kept
}

// ownership says how an entry is related to others.
type ownership struct {
	// owns is true when another entry is owned by it; needed, when one that is not Ready is, be it over several steps.
	owns, needed bool
	// representative is true for the one pod that shows that its workload, which has others that are not Ready, works in part.
	representative bool
}

// ownershipsOf finds out how entries are related.
func ownershipsOf(entries []k8spluginv1alpha1.ResourceHealth) []ownership {
	index := make(map[healthscope.Key]int, len(entries))
	for i, e := range entries {
		index[healthscope.Key{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}] = i
	}
	ownerOf := func(i int) (int, bool) {
		e := entries[i]
		if e.Owner == nil {
			return 0, false
		}
		owner, ok := index[healthscope.Key{Group: e.Owner.Group, Kind: e.Owner.Kind, Namespace: e.Namespace, Name: e.Owner.Name}]
		return owner, ok
	}
	kin := make([]ownership, len(entries))
	need := func(i int) {
		for owner, ok := ownerOf(i); ok && !kin[owner].needed; owner, ok = ownerOf(owner) {
			kin[owner].needed = true
		}
	}
	working := map[int]int{}
	for i, e := range entries {
		owner, ok := ownerOf(i)
		if !ok {
			continue
		}
		kin[owner].owns = true
		switch top := topOf(i, ownerOf); {
		case e.State != string(healthscope.Ready):
			need(i)
		case e.Group == "" && e.Kind == "Pod" && e.Reason != string(healthscope.ReasonCompleted):
			if _, ok := working[top]; !ok {
				working[top] = i
			}
		}
	}
	for _, top := range slices.Sorted(maps.Keys(working)) {
		if kin[top].needed {
			kin[working[top]].representative = true
			need(working[top])
		}
	}
	return kin
}

// maxOwners bounds the way up from owned to owner. Kubernetes' own kinds need three steps; a circle has no end.
const maxOwners = 8

// topOf follows owners upwards.
func topOf(i int, ownerOf func(int) (int, bool)) int {
	for range maxOwners {
		owner, ok := ownerOf(i)
		if !ok {
			return i
		}
		i = owner
	}
	return i
}

// ranksOf says for each entry when it goes: the lower, the earlier.
func ranksOf(entries []k8spluginv1alpha1.ResourceHealth) []int {
	states := healthscope.States()
	kin := ownershipsOf(entries)
	ranks := make([]int, len(entries))
	for i, e := range entries {
		if kin[i].representative { // The last of the leaves.
			ranks[i] = 3*(len(states)+1) + len(states)
			continue
		}
		var tier int
		switch ready, owned := e.State == string(healthscope.Ready), e.Owner != nil; {
		case ready && !kin[i].needed && owned && !kin[i].owns:
			tier = 0
		case ready && !kin[i].needed && owned:
			tier = 1
		case ready && !kin[i].needed:
			tier = 2
		case owned && !kin[i].owns:
			tier = 3
		case owned:
			tier = 4
		default:
			tier = 5
		}
		ranks[i] = tier*(len(states)+1) + slices.Index(states, healthscope.State(e.State))
	}
	return ranks
}
