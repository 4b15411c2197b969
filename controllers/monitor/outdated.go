package monitor

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// markAfter is how long a bundle may differ from its objects, with no write by its monitor, before the bundle is marked as out of date.
	markAfter = 20 * time.Second
	// succeedAfter is how long it may before the bundle is taken over. It doubles each time the other monitor turns out
	// to live, up to standDownPeriod.
	succeedAfter = 75 * time.Second
	// markRetry is when it is tried again to mark a bundle.
	markRetry = 5 * time.Second
)

// outdated is what is known of a bundle that is left to another monitor and differs from its objects.
type outdated struct {
	// written is when the bundle was written last, by the API server's clock, and since when it was first seen to differ; zero while it does not.
	written, since time.Time
	// marked is true once the bundle is annotated as out of date.
	marked bool
	// takeovers is how often the bundle was taken over although the other monitor was alive, and wrote it again.
	takeovers int
}

// note records, at a time, when the bundle was written last, whether this monitor wrote it, and whether it differs from its objects.
func (n *outdated) note(written time.Time, ours, differs bool, now time.Time) {
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

// resume takes over the annotation of the bundle, which may have been made before a restart.
func (n *outdated) resume(mark k8spluginv1alpha1.OutOfDate) {
	if !n.marked && !n.since.IsZero() && n.written.Equal(mark.Written) {
		n.marked = true
		if mark.Since.Before(n.since) {
			n.since = mark.Since
		}
	}
}

// takeOverAfter returns how long the bundle may differ before it is taken over.
func (n *outdated) takeOverAfter() time.Duration {
	return min(succeedAfter<<min(n.takeovers, 10), standDownPeriod)
}

// differs reports whether objects are gone, new, recreated, or in another state than a bundle says. New objects count
// if the bundle has others of their kind: other monitors watch fewer kinds. Objects that cannot be read now do not
// count, and those that a truncated list does not name are not gone.
func differs(said, is []k8spluginv1alpha1.ResourceHealth, truncated bool) bool {
	type key struct{ group, kind, namespace, name string }
	kinds, there := map[schema.GroupKind]bool{}, map[key]k8spluginv1alpha1.ResourceHealth{}
	for _, r := range said {
		kinds[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = true
		there[key{r.Group, r.Kind, r.Namespace, r.Name}] = r
	}
	for _, r := range is {
		old, known := there[key{r.Group, r.Kind, r.Namespace, r.Name}]
		delete(there, key{r.Group, r.Kind, r.Namespace, r.Name})
		switch {
		case r.State == string(healthscope.Unknown):
		case !known && (len(kinds) == 0 || kinds[schema.GroupKind{Group: r.Group, Kind: r.Kind}]):
			return true
		case known && (old.State != r.State || old.UID != "" && r.UID != "" && old.UID != r.UID):
			return true
		}
	}
	return len(there) > 0 && !truncated
}
