package bundle

import (
	"cmp"
	"maps"
	"slices"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// truncateToLimit reduces the status to at most limit bytes: it drops the largest lists first, then entries of resources.
func truncateToLimit(status *k8spluginv1alpha1.ResourceBundleStateStatus, limit int) {
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
	status.Resources = truncateEntries(status.Resources, sizes, excess)
}

// frameSize returns how many bytes a status takes without lists and entries.
func frameSize(status k8spluginv1alpha1.ResourceBundleStateStatus) int {
	status.Truncated, status.Resources = true, nil
	for _, list := range status.Lists() {
		*list = nil
	}
	return len(encode(status)) + len(`"resources":[],`)
}

// truncateEntries drops entries that take excess bytes together: Ready entries first, then
// the others, the best state first; leaves before their owners, because an owned entry
// whose owner is gone would count alone. When pods of a workload are not Ready, it keeps
// one that is as long as it keeps them, because a workload without a working pod looks
// Failed to a reader. Of equal entries it drops the last by key first.
func truncateEntries(entries []k8spluginv1alpha1.ResourceHealth, sizes []int, excess int) []k8spluginv1alpha1.ResourceHealth {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	ranks := ranksOf(entries)
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(b, a))
	})
	drop := 0
	for ; drop < len(order) && excess > 0; drop++ {
		excess -= sizes[order[drop]]
	}
	kept := make([]k8spluginv1alpha1.ResourceHealth, 0, len(order)-drop)
	for _, i := range slices.Sorted(slices.Values(order[drop:])) {
		kept = append(kept, entries[i])
	}
	return kept
}

// ownership describes how an entry is related to other entries.
type ownership struct {
	// owns is true when the entry owns another one. needed is true when it owns, directly or indirectly, an entry that must be kept with it, such as one that is not Ready.
	owns, needed bool
	// representative is true for one Ready pod of a workload that also has entries that are not Ready. It shows that the workload works in part.
	representative bool
}

// ownershipsOf returns the ownership of each entry.
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
	ownerships := make([]ownership, len(entries))
	markNeeded := func(i int) {
		for owner, ok := ownerOf(i); ok && !ownerships[owner].needed; owner, ok = ownerOf(owner) {
			ownerships[owner].needed = true
		}
	}
	readyPods := map[int]int{}
	for i, e := range entries {
		owner, ok := ownerOf(i)
		if !ok {
			continue
		}
		ownerships[owner].owns = true
		switch root := rootOf(i, ownerOf); {
		case e.State != string(healthscope.Ready):
			markNeeded(i)
		case e.Group == "" && e.Kind == "Pod" && e.Reason != string(healthscope.ReasonCompleted):
			if _, ok := readyPods[root]; !ok {
				readyPods[root] = i
			}
		}
	}
	for _, root := range slices.Sorted(maps.Keys(readyPods)) {
		if ownerships[root].needed {
			ownerships[readyPods[root]].representative = true
			markNeeded(readyPods[root])
		}
	}
	return ownerships
}

// maxOwners bounds the chain of owners that is followed. Built-in kinds need three steps; a cycle has no end.
const maxOwners = 8

// rootOf returns the topmost owner of an entry, at most maxOwners steps up.
func rootOf(i int, ownerOf func(int) (int, bool)) int {
	for range maxOwners {
		owner, ok := ownerOf(i)
		if !ok {
			return i
		}
		i = owner
	}
	return i
}

// ranksOf returns the rank of each entry. Entries with lower ranks are dropped first.
func ranksOf(entries []k8spluginv1alpha1.ResourceHealth) []int {
	states := healthscope.States()
	ranks := make([]int, len(entries))
	for i, o := range ownershipsOf(entries) {
		e := entries[i]
		droppable, leaf := e.State == string(healthscope.Ready) && !o.needed, !o.owns
		tier, state := 5, slices.Index(states, healthscope.State(e.State))
		switch owned := e.Owner != nil; {
		case o.representative: // The last of the leaves.
			tier, state = 3, len(states)
		case droppable && owned && leaf:
			tier = 0
		case droppable && owned:
			tier = 1
		case droppable:
			tier = 2
		case owned && leaf:
			tier = 3
		case owned:
			tier = 4
		}
		ranks[i] = tier*(len(states)+1) + state
	}
	return ranks
}
