package monitor

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
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

// neglect is that a bundle which is left to another monitor differs from its objects, and nobody writes.
type neglect struct {
	// written is when the bundle was written last, by the API server's clock, and since from when on it was seen to differ; zero while it does not.
	written, since time.Time
	// marked is true once the bundle says so itself.
	marked bool
	// taken is how often the bundle has been taken over in vain: the other monitor wrote it again.
	taken int
}

// look notes at a time whether a bundle differs that another monitor, or we ourselves, wrote then.
func (n *neglect) look(written time.Time, ours, differs bool, now time.Time) {
	again := !n.written.Equal(written)
	if again && !ours && !n.since.IsZero() && now.Sub(n.since) >= n.patience() {
		n.taken++
	}
	switch {
	case !differs:
		*n = neglect{written: written, taken: n.taken}
	case again || n.since.IsZero() || n.since.After(now):
		*n = neglect{written: written, since: now, taken: n.taken}
	}
}

// resume takes over what the bundle says of itself: it has been marked, perhaps before a restart.
func (n *neglect) resume(mark k8spluginv1alpha1.OutOfDate) {
	if !n.marked && !n.since.IsZero() && n.written.Equal(mark.Written) {
		n.marked = true
		if mark.Since.Before(n.since) {
			n.since = mark.Since
		}
	}
}

// patience is how long the bundle may differ before it is taken over.
func (n *neglect) patience() time.Duration {
	return min(succeedAfter<<min(n.taken, 10), standDownPeriod)
}

// neglected says for how long a bundle is still to be left to the monitor that writes it, at most for wait. It marks
// the bundle when that monitor has not written for a while what has changed. Not more than zero means that the bundle is ours now.
func (r *reconciler) neglected(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, rival string, wait time.Duration, now time.Time) (time.Duration, error) {
	differs, err := r.behind(b, now)
	if err != nil {
		return 0, err
	}
	n := r.ledger.neglected(b, differs, now)
	if n.since.IsZero() {
		return wait, nil
	}
	left := n.since.Add(n.patience()).Sub(now)
	if !n.marked {
		if unmarked := n.since.Add(markAfter).Sub(now); unmarked > 0 {
			return min(wait, unmarked), nil
		}
		left = min(left, r.mark(ctx, b, rival, n))
	}
	return min(wait, left), nil
}

// mark marks a bundle as out of date, and says when to try again if that fails.
func (r *reconciler) mark(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, rival string, n neglect) time.Duration {
	logger := ctrl.LoggerFrom(ctx)
	err := r.status.mark(ctx, b, k8spluginv1alpha1.OutOfDate{Written: n.written, Since: n.since})
	if err != nil && !apierrors.IsForbidden(err) {
		logger.Error(err, "Cannot mark the bundle as out of date, trying again")
		return markRetry
	}
	logger.Info("Bundle is out of date: its objects have changed, and the monitor that fills it has not written that", "monitor", rival, "since", n.since)
	if err != nil { // Then the hub hears of it when the bundle is taken over.
		logger.Error(err, "Cannot mark the bundle as out of date")
	}
	r.ledger.marked(nameOfBundle(b))
	return standDownPeriod
}

// behind says whether a bundle of another monitor says of its objects what is not so.
func (r *reconciler) behind(b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (bool, error) {
	b, err := whole(b)
	if err != nil {
		return false, err
	}
	is, err := r.build(b, now)
	if err != nil {
		return false, err
	}
	said := *b
	bundle.Slim(&said, r.options.User)
	return differs(said.Status.Resources, is.Resources, is.Truncated), nil
}

// differs says whether objects are gone, new, made anew, or in another state than a bundle says. Of new ones those count
// that are of a kind which the bundle has: other monitors watch fewer kinds than ours. What cannot be read now differs in
// nothing, and what a truncated list does not name is not gone.
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

// neglected notes whether a bundle that is left to another monitor differs from its objects.
func (l *ledger) neglected(b *k8spluginv1alpha1.ResourceBundleState, differs bool, now time.Time) neglect {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(nameOfBundle(b))
	written, manager := k8spluginv1alpha1.LastWrite(b.ManagedFields)
	e.neglect.look(written, manager == string(fieldOwner), differs, now)
	if mark, err := k8spluginv1alpha1.ParseOutOfDate(b.Annotations[k8spluginv1alpha1.AnnotationOutOfDate]); err == nil {
		e.neglect.resume(mark)
	}
	return e.neglect
}

// marked notes that a bundle says that it is out of date.
func (l *ledger) marked(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(name).neglect.marked = true
}
