package bundle

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// withUnreadable adds the objects of the previous status that cannot be read at
// present to the items of a bundle, sorted by key, and reports whether any item is
// unreadable. An object of an unreadable kind that the caller passes nevertheless may be out of date, and is unreadable too.
func withUnreadable(items []item, known previousEntries, opts Options) (all []item, anyUnreadable bool) {
	if len(opts.Unreadable) == 0 {
		return items, false
	}
	present := make(map[healthscope.Key]struct{}, len(items))
	for i := range items {
		present[items[i].result.Key] = struct{}{}
		if slices.Contains(opts.Unreadable, groupKind(items[i].result)) {
			items[i].result.Labels = allowedLabels(labelsOf(items[i].object), opts.AllowedLabels)
			items[i] = item{result: unreadableResult(items[i].result)}
			anyUnreadable = true
		}
	}
	for key, r := range known {
		if _, ok := present[key]; !ok && slices.Contains(opts.Unreadable, groupKind(r)) {
			r.Labels = allowedLabels(r.Labels, opts.AllowedLabels)
			items = append(items, item{result: unreadableResult(r), fromPrevious: true})
			anyUnreadable = true
		}
	}
	slices.SortFunc(items, compareItems)
	return items, anyUnreadable
}

// unreadableResult returns the result of an object that can no longer be read: it only keeps which object it is.
func unreadableResult(r healthscope.Result) healthscope.Result {
	return healthscope.Result{
		Key: r.Key, Version: r.Version, UID: r.UID, Owner: r.Owner, Labels: r.Labels,
		State: healthscope.Unknown, Reason: healthscope.ReasonForbidden,
		Message: "the monitor may not read objects of this kind, or was given no answer",
	}
}

// groupKind returns the kind of the object that a result is of.
func groupKind(r healthscope.Result) schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// countUnnamed returns how many objects a truncated previous status counted without
// naming them, as far as they are not among the items now, and how many of these
// its summary counted. While kinds cannot be read, these objects may be of one of
// them, and so are kept. The items must be linked.
func countUnnamed(items []item, previous *k8spluginv1alpha1.ResourceBundleStateStatus, known previousEntries, opts Options) (all, counted int) {
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

// dropsRemembered reports whether a status has no room for an object that is known from the
// previous status only. The next status built from it cannot name that object, and so has more room.
func dropsRemembered(status *k8spluginv1alpha1.ResourceBundleStateStatus, items []item) bool {
	if len(status.Resources) == len(items) {
		return false
	}
	named := entriesOf(status)
	return slices.ContainsFunc(items, func(it item) bool {
		_, ok := named[it.result.Key]
		return it.fromPrevious && !ok
	})
}
