package monitor

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// markAfter is how long a bundle may differ from its objects without a write of its monitor before it is marked as out of date.
	markAfter = 20 * time.Second
	// minTakeOverAfter is how long a bundle may differ before it is taken over. The time doubles each time the other monitor
	// writes again, up to standDownPeriod.
	minTakeOverAfter = 75 * time.Second
	// markRetry is the pause before marking a bundle is retried.
	markRetry = 5 * time.Second
)

// outdated tracks whether a bundle that is left to another monitor differs from its objects.
type outdated struct {
	// written is when the bundle was written last, by the API server's clock. since is when it was first seen to differ; zero while it does not.
	written, since time.Time
	// marked is true once the bundle is annotated as out of date.
	marked bool
	// takeovers counts how often the other monitor wrote the bundle again after it was taken over.
	takeovers int
}

// update records when the bundle was written last, whether this monitor wrote it, and whether it differs from its objects now.
func (n *outdated) update(written time.Time, ours, differs bool, now time.Time) {
	again := !n.written.Equal(written)
	if again && !ours && !n.since.IsZero() && now.Sub(n.since) >= n.takeOverAfter() {
		n.takeovers++
	}
	switch {
	case !differs:
		*n = outdated{written: written, takeovers: n.takeovers}
	case again || n.since.IsZero() || n.since.After(now):
		*n = outdated{written: written, since: now, takeovers: n.takeovers}
	}
}

// restoreMark restores the state from the annotation of the bundle, which may have been written before a restart.
func (n *outdated) restoreMark(mark k8spluginv1alpha1.OutOfDate) {
	if !n.marked && !n.since.IsZero() && n.written.Equal(mark.Written) {
		n.marked = true
		if mark.Since.Before(n.since) {
			n.since = mark.Since
		}
	}
}

// takeOverAfter returns how long the bundle may differ before it is taken over.
func (n *outdated) takeOverAfter() time.Duration {
	return min(minTakeOverAfter<<min(n.takeovers, 10), standDownPeriod)
}

// differs reports whether objects were deleted, created, recreated, or are in another state than the bundle reports. New objects count
// only if the bundle has others of their kind, or none at all: other monitors watch fewer kinds. Objects that cannot be read now do not
// count, and an object that is missing in a truncated list does not count as deleted.
func differs(reported, actual []k8spluginv1alpha1.ResourceHealth, truncated bool) bool {
	type key struct{ group, kind, namespace, name string }
	kinds, remaining := map[schema.GroupKind]bool{}, map[key]k8spluginv1alpha1.ResourceHealth{}
	for _, r := range reported {
		kinds[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = true
		remaining[key{r.Group, r.Kind, r.Namespace, r.Name}] = r
	}
	for _, r := range actual {
		old, known := remaining[key{r.Group, r.Kind, r.Namespace, r.Name}]
		delete(remaining, key{r.Group, r.Kind, r.Namespace, r.Name})
		switch {
		case r.State == string(healthscope.Unknown):
		case !known && (len(kinds) == 0 || kinds[schema.GroupKind{Group: r.Group, Kind: r.Kind}]):
			return true
		case known && (old.State != r.State || old.UID != "" && r.UID != "" && old.UID != r.UID):
			return true
		}
	}
	return len(remaining) > 0 && !truncated
}
