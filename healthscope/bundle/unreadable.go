package bundle

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// withUnreadable returns the items of a bundle with those added that are known
// from before and cannot be read at present, sorted by key, and reports whether
// there are such. An object of an unreadable kind that is given all the same is what a caller remembers of it, and cannot be judged either.
func withUnreadable(items []item, known entries, opts Options) (all []item, unread bool) {
	if len(opts.Unreadable) == 0 {
		return items, false
	}
	given := make(map[healthscope.Key]struct{}, len(items))
	for i := range items {
		given[items[i].result.Key] = struct{}{}
		if slices.Contains(opts.Unreadable, groupKind(items[i].result)) {
			items[i].result.Labels = allowed(labelsOf(items[i].object), opts.AllowedLabels)
			items[i] = unreadable(items[i].result)
			unread = true
		}
	}
	for key, r := range known {
		if _, ok := given[key]; !ok && slices.Contains(opts.Unreadable, groupKind(r)) {
			r.Labels = allowed(r.Labels, opts.AllowedLabels)
			remembered := unreadable(r)
			remembered.remembered = true
			items = append(items, remembered)
			unread = true
		}
	}
	slices.SortFunc(items, compareItems)
	return items, unread
}

// unreadable returns what is left of a result when the object cannot be read any more: which object it is of.
func unreadable(r healthscope.Result) item {
	return item{unread: true, result: healthscope.Result{
		Key: r.Key, Version: r.Version, UID: r.UID, Owner: r.Owner, Labels: r.Labels,
		State: healthscope.Unknown, Reason: healthscope.ReasonForbidden,
		Message: "the monitor may not read objects of this kind, or was given no answer",
	}}
}

// groupKind returns the kind of the object that a result is of.
func groupKind(r healthscope.Result) schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// unnamed returns how many objects a truncated previous status had that it did
// not name and that have not been given, and how many of these counted in its
// summary. While kinds cannot be read, it is not known whether these are of one of
// them: they are not given up. The items must be linked.
func unnamed(items []item, previous *k8spluginv1alpha1.ResourceBundleStateStatus, known entries, opts Options) (all, counted int) {
	if len(opts.Unreadable) == 0 || previous == nil || previous.Summary == nil || !previous.Truncated {
		return 0, 0
	}
	seen := maps.Clone(known)
	for i := range items {
		seen[items[i].result.Key] = items[i].result
	}
	all = int(previous.ResourceCount) - len(seen)
	if all <= 0 {
		return 0, 0
	}
	named := slices.SortedFunc(maps.Values(seen), func(a, b healthscope.Result) int { return a.Compare(b.Key) })
	counted = int(previous.Summary.Total) - countOf(named).Total
	return all, min(max(counted, 0), all)
}

// forgets reports whether a status, for want of room, leaves out an object that is
// remembered. The next one made from it cannot name that object, and so has more room.
func forgets(status *k8spluginv1alpha1.ResourceBundleStateStatus, items []item) bool {
	if len(status.Resources) == len(items) {
		return false
	}
	named := entriesOf(status)
	return slices.ContainsFunc(items, func(it item) bool {
		_, ok := named[it.result.Key]
		return it.remembered && !ok
	})
}
