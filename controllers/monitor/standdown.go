package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

const (
	// standDownPeriod is how long a bundle is left alone after another monitor wrote it.
	standDownPeriod = time.Hour
	// markAfter is how long a bundle may differ from its objects without a write of its monitor before it is marked as out of date.
	markAfter = 20 * time.Second
	// minTakeOverAfter is how long a bundle may differ before it is taken over. The time doubles each time the other monitor
	// writes again, up to standDownPeriod.
	minTakeOverAfter = 75 * time.Second
	// markRetry is the pause before marking a bundle is retried.
	markRetry = 5 * time.Second
)

// coWriter is what is known of another monitor that writes a bundle.
type coWriter struct {
	// wrote is when it wrote last, by the API server's clock, and seen when that was first noticed.
	wrote, seen time.Time
	// since is when the bundle was first seen to differ from its objects since that write; zero while it does not.
	since time.Time
	// marked is true once the bundle is annotated as out of date.
	marked bool
	// takeovers counts how often it wrote the bundle again after it was to be taken over.
	takeovers int
}

// standDown returns how long a bundle is left to another monitor, and the name of that monitor: for an hour after its last write. EMCO's and
// ONAP's monitors write the whole status and drop unknown fields, which distinguishes them from a user who edits a status; such an edit is
// reverted at once. A removed monitor does not write again, and its bundles are taken over. Zero means that this monitor owns the bundle.
//
// The hour begins when the write was first seen, if that is earlier than its timestamp, so that clock
// skew with the API server does not extend it.
func (c *coWriter) standDown(b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (wait time.Duration, writer string) {
	if b.Status.Summary != nil {
		return 0, ""
	}
	isOurs := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == string(fieldOwner) }
	last, writer := k8spluginv1alpha1.LastWrite(slices.DeleteFunc(slices.Clone(b.ManagedFields), isOurs))
	if !c.wrote.Equal(last) || c.seen.After(now) {
		if !c.since.IsZero() && now.Sub(c.since) >= c.takeOverAfter() {
			c.takeovers++
		}
		*c = coWriter{wrote: last, seen: now, takeovers: c.takeovers}
	}
	if last.After(c.seen) {
		last = c.seen
	}
	if wait = last.Add(standDownPeriod).Sub(now); writer == "" || wait <= 0 {
		return 0, ""
	}
	return wait, writer
}

// compare records whether the bundle differs from its objects. written is its last write, and mark is the mark that it carries, which may
// have been written before a restart.
func (c *coWriter) compare(differs bool, written time.Time, mark k8spluginv1alpha1.OutOfDate, now time.Time) {
	switch {
	case !differs:
		c.since, c.marked = time.Time{}, false
		return
	case c.since.IsZero() || c.since.After(now):
		c.since, c.marked = now, false
	}
	if !c.marked && mark.Written.Equal(written) {
		c.marked = true
		if mark.Since.Before(c.since) {
			c.since = mark.Since
		}
	}
}

// takeOverAfter returns how long the bundle may differ before it is taken over.
func (c *coWriter) takeOverAfter() time.Duration {
	return min(minTakeOverAfter<<min(c.takeovers, 10), standDownPeriod)
}

// holdOff returns how long the bundle must not be written, because it is left to
// another monitor or was written recently. Zero or less means that it may be written.
func (r *reconciler) holdOff(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (time.Duration, error) {
	wait, writer := s.coWriter.standDown(b, now)
	if writer != "" {
		left, err := r.leaveOutdated(ctx, s, b, writer, now)
		if err != nil {
			return 0, err
		}
		wait = min(wait, left)
	}
	if before := s.standsDown.Swap(writer != ""); writer != "" && !before {
		r.report(ctx, b, eventStandingDown, fmt.Sprintf("%q writes the status and drops what HealthScope's monitor adds: the bundle is left alone until that has not written for %s, or not what has changed for %s", writer, standDownPeriod, minTakeOverAfter))
	}
	return max(wait, s.due(now)), nil
}

// leaveOutdated returns how long a bundle is left to the monitor that writes it although that monitor may have missed a change. It marks the
// bundle if the change was not written within markAfter. Zero or less means that the bundle is taken over.
func (r *reconciler) leaveOutdated(ctx context.Context, s *writeState, b *k8spluginv1alpha1.ResourceBundleState, writer string, now time.Time) (time.Duration, error) {
	differs, err := r.isOutdated(s, b, now)
	if err != nil {
		return 0, err
	}
	c := &s.coWriter
	written, _ := k8spluginv1alpha1.LastWrite(b.ManagedFields)
	mark, _ := k8spluginv1alpha1.ParseOutOfDate(b.Annotations[k8spluginv1alpha1.AnnotationOutOfDate]) // An invalid mark is none.
	c.compare(differs, written, mark, now)
	if c.since.IsZero() {
		return standDownPeriod, nil
	}
	age := now.Sub(c.since)
	remaining := c.takeOverAfter() - age
	if !c.marked {
		if age < markAfter {
			return markAfter - age, nil
		}
		if c.marked = r.mark(ctx, b, writer, k8spluginv1alpha1.OutOfDate{Written: written, Since: c.since}); !c.marked {
			return min(remaining, markRetry), nil
		}
	}
	return remaining, nil
}

// isOutdated reports whether a bundle of another monitor differs from its objects.
func (r *reconciler) isOutdated(s *writeState, b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (bool, error) {
	b, err := decompressed(b)
	if err != nil {
		return false, err
	}
	actual, err := r.build(s, b, now)
	if err != nil {
		return false, err
	}
	reported := *b
	bundle.Trim(&reported, r.options.User)
	reads := func(e k8spluginv1alpha1.ResourceHealth) bool { return !actual.Truncated && r.reads(b, e) }
	return differs(reported.Status.Resources, actual.Resources, reads), nil
}

// mark marks a bundle as out of date, and reports whether that is not to be tried again.
func (r *reconciler) mark(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, writer string, mark k8spluginv1alpha1.OutOfDate) bool {
	logger := ctrl.LoggerFrom(ctx)
	err := r.status.mark(ctx, b, mark)
	if err != nil && !apierrors.IsForbidden(err) {
		logger.Error(err, "Cannot mark the bundle as out of date, trying again")
		return false
	}
	logger.Info("Bundle is out of date: its objects have changed, and its monitor has not written the change", "monitor", writer, "since", mark.Since)
	if err != nil { // The hub sees it when the bundle is taken over.
		logger.Error(err, "Cannot mark the bundle as out of date")
	}
	return true
}

// differs reports whether objects were deleted, created, recreated, or are in another state than the bundle reports. New objects count
// only if the bundle has others of their kind, or none at all: other monitors watch fewer kinds, or others. Objects that cannot be read now do
// not count, and an object that is missing counts as deleted only if reads reports that it would be in actual.
func differs(reported, actual []k8spluginv1alpha1.ResourceHealth, reads func(k8spluginv1alpha1.ResourceHealth) bool) bool {
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
	return slices.ContainsFunc(slices.Collect(maps.Values(remaining)), reads)
}
