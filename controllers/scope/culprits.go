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

// kindCluster is the kind of a culprit that is a cluster.
const kindCluster = "Cluster"

// isCluster reports whether a culprit is a cluster and not an object in one.
func isCluster(c corev1alpha2.Culprit) bool {
	return c.Kind == kindCluster && c.Group == "" && c.Namespace == "" && c.Name == c.Cluster
}

// lostCluster is a cluster that cannot be seen as it is now, with what the scope misses there.
type lostCluster struct {
	state     fleet.ClusterState
	resources int
	since     time.Time
}

// lostStates returns the states of those clusters of findings that are known and not seen as they are now.
func (g *gatherer) lostStates() map[string]fleet.ClusterState {
	lost, asked := map[string]fleet.ClusterState{}, map[string]bool{}
	ask := func(cluster string) {
		if asked[cluster] {
			return
		}
		asked[cluster] = true
		if state, known := g.state(cluster); known && !state.Reachable() {
			lost[cluster] = state
		}
	}
	for _, f := range g.out.findings {
		for _, cluster := range f.clusters {
			ask(cluster)
		}
		for _, r := range f.results {
			ask(r.Cluster)
		}
		for key := range f.unlisted {
			ask(key.Cluster)
		}
	}
	return lost
}

// lostIn returns the clusters that keep the scope from being healthy because they cannot be seen.
func (v *verdict) lostIn(states map[string]fleet.ClusterState) map[string]*lostCluster {
	lost := map[string]*lostCluster{}
	count := func(cluster string, n int, since time.Time) {
		if lost[cluster] == nil {
			lost[cluster] = &lostCluster{state: states[cluster]}
		}
		lost[cluster].resources += n
		lost[cluster].since = earlier(lost[cluster].since, since)
	}
	for _, p := range v.members {
		if state, ok := states[p.Cluster]; ok && p.ails() && p.State == healthscope.Unknown && p.Reason == state.Reachability.Reason() {
			count(p.Cluster, 1, p.Since)
		}
	}
	for _, u := range v.unlisted {
		if _, ok := states[u.Cluster]; ok && u.Summary.Unknown > 0 {
			count(u.Cluster, u.Summary.Unknown, time.Time{})
		}
	}
	return lost
}

// culpritsOf returns what keeps the scope from being healthy, worst first. A cluster that cannot be seen is one culprit,
// before all objects that are Unknown.
func (v *verdict) culpritsOf(states map[string]fleet.ClusterState) []corev1alpha2.Culprit {
	var all, clusters []corev1alpha2.Culprit
	lost := v.lostIn(states)
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		clusters = append(clusters, lost[name].culprit())
	}
	for _, p := range v.members {
		if !p.ails() {
			continue
		}
		if healthscope.CompareStates(p.State, healthscope.Unknown) >= 0 {
			all, clusters = append(all, clusters...), nil
		}
		all = append(all, corev1alpha2.Culprit{
			Cluster: p.Cluster, App: p.App, Group: p.Group, Kind: p.Kind, Namespace: p.Namespace, Name: p.Name,
			State: string(p.State), Reason: string(p.Reason), Cause: shorten(cmp.Or(p.Cause, p.Message)), Since: sinceOf(p.Since),
		})
	}
	return append(all, clusters...)
}

// culprit returns the culprit that stands for the cluster. It says nothing of how long ago the cluster was seen: its text changes only when the facts do.
func (l *lostCluster) culprit() corev1alpha2.Culprit {
	resources := "1 resource"
	if l.resources != 1 {
		resources = fmt.Sprintf("%d resources", l.resources)
	}
	return corev1alpha2.Culprit{
		Cluster: l.state.Name, Kind: kindCluster, Name: l.state.Name,
		State: string(healthscope.Unknown), Reason: string(l.state.Reachability.Reason()),
		Cause: shorten(fmt.Sprintf("%s cannot be seen: %s", resources, cmp.Or(l.state.Message, string(l.state.Reachability)))), Since: sinceOf(l.since),
	}
}

// sinceOf returns a time as a status has it; nil for one that is not known.
func sinceOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return metaTime(at)
}
