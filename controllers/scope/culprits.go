package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

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

// keyOf returns the key of the object that a culprit names.
func keyOf(c corev1alpha2.Culprit) healthscope.Key {
	return healthscope.Key{Cluster: c.Cluster, Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// staleCluster is a cluster that is not Connected, with the number of the scope's resources that are Unknown for that reason.
type staleCluster struct {
	state     fleet.ClusterState
	resources int
	since     time.Time
}

// staleClusters returns the states of those clusters of findings that are known and not Connected.
func (g *gatherer) staleClusters() map[string]fleet.ClusterState {
	clusters := sets.New[string]()
	for _, f := range g.out.findings {
		clusters.Insert(f.clusters...)
		for _, r := range f.results {
			clusters.Insert(r.Cluster)
		}
		for key := range f.unlisted {
			clusters.Insert(key.Cluster)
		}
	}
	stale := map[string]fleet.ClusterState{}
	for cluster := range clusters {
		if state, known := g.clusterState(cluster); known && !state.Reachable() {
			stale[cluster] = state
		}
	}
	return stale
}

// culpritsOf returns the culprits of the scope, worst first. A cluster that is not Connected is one culprit and
// comes before all objects that are Unknown.
func (v *judgement) culpritsOf(states map[string]fleet.ClusterState) []corev1alpha2.Culprit {
	var all, clusters []corev1alpha2.Culprit
	stale := v.staleClustersIn(states)
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		clusters = append(clusters, stale[name].culprit())
	}
	for _, p := range v.members {
		if !p.isUnhealthy() {
			continue
		}
		if healthscope.CompareStates(p.State, healthscope.Unknown) >= 0 {
			all, clusters = append(all, clusters...), nil
		}
		all = append(all, corev1alpha2.Culprit{
			Cluster: p.Cluster, App: p.App, Group: p.Group, Kind: p.Kind, Namespace: p.Namespace, Name: p.Name,
			State: string(p.State), Reason: string(p.Reason), Cause: shorten(cmp.Or(p.Cause, p.Message)), Since: metaTimeOrNil(p.Since),
		})
	}
	return append(all, clusters...)
}

// staleClustersIn returns the clusters that keep the scope from being healthy because they are not Connected.
func (v *judgement) staleClustersIn(states map[string]fleet.ClusterState) map[string]*staleCluster {
	stale := map[string]*staleCluster{}
	count := func(cluster string, n int, since time.Time) {
		if stale[cluster] == nil {
			stale[cluster] = &staleCluster{state: states[cluster]}
		}
		stale[cluster].resources += n
		stale[cluster].since = earlier(stale[cluster].since, since)
	}
	for _, p := range v.members {
		if state, ok := states[p.Cluster]; ok && p.isUnhealthy() && p.State == healthscope.Unknown && p.Reason == state.Reachability.Reason() {
			count(p.Cluster, 1, p.Since)
		}
	}
	for _, u := range v.unlisted {
		if _, ok := states[u.Cluster]; ok && u.Summary.Unknown > 0 {
			count(u.Cluster, u.Summary.Unknown, time.Time{})
		}
	}
	return stale
}

// culprit returns the culprit for the cluster. Its cause holds no age, so that it changes only when the facts do.
func (c *staleCluster) culprit() corev1alpha2.Culprit {
	resources := "1 resource"
	if c.resources != 1 {
		resources = fmt.Sprintf("%d resources", c.resources)
	}
	return corev1alpha2.Culprit{
		Cluster: c.state.Name, Kind: kindCluster, Name: c.state.Name,
		State: string(healthscope.Unknown), Reason: string(c.state.Reachability.Reason()),
		Cause: shorten(fmt.Sprintf("%s cannot be seen: %s", resources, cmp.Or(c.state.Message, string(c.state.Reachability)))), Since: metaTimeOrNil(c.since),
	}
}

// metaTimeOrNil returns a time in the form of a status; nil when the time is zero.
func metaTimeOrNil(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return metaTime(at)
}
