package bundle

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// entryOf writes a result as an entry of status.resources.
func entryOf(r healthscope.Result) k8spluginv1alpha1.ResourceHealth {
	entry := k8spluginv1alpha1.ResourceHealth{
		Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID,
		State: string(r.State), Reason: string(r.Reason), Message: r.Message, Labels: r.Labels,
		Serving: r.Serving, Suspended: r.Suspended, Warning: r.Warning, Timed: r.Timed,
	}
	if p := r.Progress; p != nil {
		entry.Progress = &k8spluginv1alpha1.ResourceProgress{
			Generation: p.Generation, Updated: p.Updated, Ready: p.Ready, Available: p.Available, Succeeded: p.Succeeded,
		}
		if !p.At.IsZero() {
			entry.ProgressedAt = new(metav1.NewTime(p.At))
		}
	}
	if !r.Since.IsZero() {
		since := metav1.NewTime(r.Since)
		entry.Since = &since
	}
	if r.Owner != nil {
		entry.Owner = &k8spluginv1alpha1.ResourceOwner{Group: r.Owner.Group, Kind: r.Owner.Kind, Name: r.Owner.Name}
	}
	if r.Replicas != nil {
		entry.Desired, entry.Available = new(r.Replicas.Desired), new(r.Replicas.Ready)
	}
	if r.ProgressDeadline > 0 {
		entry.ProgressDeadlineSeconds = new(int32(min(r.ProgressDeadline/time.Second, math.MaxInt32)))
	}
	return entry
}

// resultOf reads an entry of status.resources. It returns false when the entry does not name an object, or its state is not valid.
func resultOf(cluster string, entry k8spluginv1alpha1.ResourceHealth) (healthscope.Result, bool) {
	state := healthscope.State(entry.State)
	if entry.Kind == "" || entry.Name == "" || !state.Valid() {
		return healthscope.Result{}, false
	}
	r := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: entry.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name},
		Version: entry.Version, UID: entry.UID, State: state, Reason: healthscope.Reason(entry.Reason), Message: entry.Message, Labels: entry.Labels,
		Serving: entry.Serving, Suspended: entry.Suspended, Warning: entry.Warning, Timed: entry.Timed,
	}
	if p := entry.Progress; p != nil {
		r.Progress = &healthscope.Progress{
			Generation: p.Generation, Updated: p.Updated, Ready: p.Ready, Available: p.Available, Succeeded: p.Succeeded,
		}
		if entry.ProgressedAt != nil {
			r.Progress.At = entry.ProgressedAt.Time
		}
	}
	if entry.Since != nil {
		r.Since = entry.Since.Time
	}
	if entry.Owner != nil {
		r.Owner = &healthscope.Owner{Group: entry.Owner.Group, Kind: entry.Owner.Kind, Name: entry.Owner.Name}
	}
	if entry.Desired != nil && entry.Available != nil {
		r.Replicas = &healthscope.Replicas{Ready: *entry.Available, Desired: *entry.Desired}
	}
	if entry.ProgressDeadlineSeconds != nil && *entry.ProgressDeadlineSeconds > 0 {
		r.ProgressDeadline = time.Duration(*entry.ProgressDeadlineSeconds) * time.Second
	}
	r.Clean()
	return r, true
}

// countOf counts results as Judge does at the zero time, when no time limit has
// passed: a bundle changes only when its objects do. The reader of the bundle
// applies the time limits.
func countOf(results []healthscope.Result) healthscope.Summary {
	return healthscope.Summarize(healthscope.Judge(results, healthscope.Policy{}, time.Time{}).Members)
}

// summaryOf writes counts as a summary.
func summaryOf(counted healthscope.Summary) k8spluginv1alpha1.ResourceCounts {
	return k8spluginv1alpha1.ResourceCounts{
		State: string(counted.State()), Total: int32(counted.Total),
		Ready: int32(counted.Ready), Pending: int32(counted.Pending), Failed: int32(counted.Failed), Unknown: int32(counted.Unknown),
	}
}
