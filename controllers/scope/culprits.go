package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// culpritsOf returns the culprits of the scope, worst first. A cluster that is not Connected is one culprit and
// comes before all objects that are Unknown.
func (v *judgement) culpritsOf(states map[string]fleet.ClusterState) []corev1alpha2.Culprit {
	var all []corev1alpha2.Culprit
	clusters := v.staleCulprits(states)
	for _, p := range v.Members {
		if !p.isUnhealthy() {
			continue
		}
		if healthscope.CompareStates(p.State, healthscope.Unknown) >= 0 {
			all, clusters = append(all, clusters...), nil
		}
		all = append(all, corev1alpha2.Culprit{
			Cluster: p.Cluster, App: p.App, Group: p.Group, Kind: p.Kind, Namespace: p.Namespace, Name: p.Name,
			State: string(p.State), Reason: string(p.Reason), Cause: shorten(cmp.Or(p.Cause, p.Message)), Since: metaTime(p.Since),
		})
	}
	return append(all, clusters...)
}

// staleCulprits returns the clusters that keep the scope from being healthy because they are not Connected, sorted by name. Their
// causes hold no age, so that they change only when the facts do.
func (v *judgement) staleCulprits(states map[string]fleet.ClusterState) (clusters []corev1alpha2.Culprit) {
	resources, since := map[string]int{}, map[string]time.Time{}
	for _, p := range v.Members {
		if state, ok := states[p.Cluster]; ok && p.isUnhealthy() && p.State == healthscope.Unknown && p.Reason == state.Reachability.Reason() {
			resources[p.Cluster]++
			since[p.Cluster] = earlier(since[p.Cluster], p.Since)
		}
	}
	for _, u := range v.Unlisted {
		if _, ok := states[u.Cluster]; ok && u.Summary.Unknown > 0 {
			resources[u.Cluster] += u.Summary.Unknown
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		state, what := states[name], "1 resource"
		if resources[name] != 1 {
			what = fmt.Sprintf("%d resources", resources[name])
		}
		clusters = append(clusters, corev1alpha2.Culprit{
			Cluster: name, Kind: kindCluster, Name: name,
			State: string(healthscope.Unknown), Reason: string(state.Reachability.Reason()),
			Cause: shorten(fmt.Sprintf("%s cannot be seen: %s", what, cmp.Or(state.Message, string(state.Reachability)))), Since: metaTime(since[name]),
		})
	}
	return clusters
}

// metaTime returns a time in the form of a status, truncated to the second; nil when the time is zero.
func metaTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.Truncate(time.Second)))
}

// earlier returns the earlier of two times; a zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
