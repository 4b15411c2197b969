package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// connectGrace is how long a scope waits for a cluster that the hub connects to
// for the first time and that the spec or status names, or for a kind that the scope
// refers to there. Without it, each restart of the hub would make every scope unknown
// for a moment. After it, resources that have not been read are Unknown, and all others are judged.
const connectGrace = 20 * time.Second

// firstGrace is the same for a scope that has no status yet and waits for a cluster or kind that does not respond. For a kind whose
// objects are being listed it waits for connectGrace, like other scopes, so that its status is written once.
const firstGrace = 2 * time.Second

// lastSeen separates the message on a resource whose cluster cannot be read from its last known state, as in healthscope.MarkUnreachable.
const lastSeen = "; last seen "

// clusterState returns the state of a cluster, and whether the hub knows the cluster.
func (g *gatherer) clusterState(cluster string) (fleet.ClusterState, bool) {
	g.out.dependencies[clusterDependency(cluster)] = nil
	if s, away := g.unreadableAtStart[cluster]; away {
		return s, true
	}
	return g.view.State(cluster)
}

// unreadable returns the state of a cluster that the hub knows and cannot read, and whether it is one.
func (g *gatherer) unreadable(cluster string) (fleet.ClusterState, bool) {
	s, known := g.clusterState(cluster)
	return s, known && !s.Answers()
}

func (g *gatherer) waitForCluster(cluster string) {
	s, known := g.clusterState(cluster)
	if !known || s.Reachability != fleet.Connecting {
		return
	}
	g.waitSince(s.Since)
}

func (g *gatherer) waitForKind(l fleet.Lookup) {
	switch {
	case l.Listing:
		g.waitUpTo(connectGrace, l.Since)
	case l.Syncing:
		g.waitSince(l.Since)
	}
}

// waitSince makes the scope wait for something that the hub began to read for the first time at since. A scope without a
// status waits for a shorter time: it has no status to keep, and "unknown" is better than none.
func (g *gatherer) waitSince(since time.Time) {
	if g.scope.Status.ObservedGeneration <= 0 {
		g.waitUpTo(firstGrace, since)
	} else {
		g.waitUpTo(connectGrace, since)
	}
}

// waitUpTo makes the scope wait until grace has passed since a time.
func (g *gatherer) waitUpTo(grace time.Duration, since time.Time) {
	if wait := since.Add(grace).Sub(g.now); wait > 0 {
		g.out.syncWait = max(g.out.syncWait, min(wait, grace))
	}
}

// setReachability sets how many clusters of the scope are Connected, and when the others were seen last. It returns the condition
// ClustersReachable, with the reason of the worst cluster. state returns the state of a cluster; false when it is not known.
func setReachability(next *corev1alpha2.HealthScopeStatus, before []corev1alpha2.AppStatus, v judgement, state func(string) (fleet.ClusterState, bool)) conditionState {
	clusters, stale := clustersOf(v), map[string]fleet.ClusterState{}
	worst, condition := -1, conditionState{ReasonAllReachable, "every cluster of the scope is Connected"}
	var texts []string
	for _, name := range clusters {
		c, known := state(name)
		rank, reason := slices.Index(fleet.Reachabilities(), c.Reachability), Reason(c.Reachability)
		switch {
		case !known:
			rank, reason = len(fleet.Reachabilities()), ReasonClusterUnknown
		case c.Reachable():
			continue
		}
		stale[name] = c
		if rank > worst {
			worst, condition.reason = rank, reason
		}
		texts = append(texts, fmt.Sprintf("%s: %s", name, reason))
	}
	next.ClustersReachable = fmt.Sprintf("%d/%d", len(clusters)-len(stale), len(clusters))
	if len(stale) > 0 {
		condition.message = fmt.Sprintf("%d of %d clusters are not Connected: %s", len(stale), len(clusters), strings.Join(texts, ", "))
		setLastSeen(next.Apps, before, stale)
	}
	return condition
}

// clustersOf returns the clusters the scope has members in, or expects them in, sorted.
func clustersOf(v judgement) []string {
	clusters := sets.New[string]()
	for _, p := range v.Members {
		clusters.Insert(p.Cluster)
	}
	for _, u := range v.Unlisted {
		clusters.Insert(u.Cluster)
	}
	return slices.Sorted(maps.Keys(clusters))
}

// setLastSeen sets when stale clusters were seen last. For a cluster that has not been read since the hub started, the time is
// carried over from the previous status.
func setLastSeen(next, before []corev1alpha2.AppStatus, stale map[string]fleet.ClusterState) {
	lastSeen := map[appCluster]*metav1.Time{}
	for _, a := range before {
		for _, c := range a.Clusters {
			lastSeen[appCluster{a.Name, c.Name}] = c.LastSeen
		}
	}
	for _, a := range next {
		for i := range a.Clusters {
			c := &a.Clusters[i]
			state, isStale := stale[c.Name]
			if !isStale {
				continue
			}
			c.LastSeen = cmp.Or(metaTime(state.LastSeen), lastSeen[appCluster{a.Name, c.Name}])
		}
	}
}
