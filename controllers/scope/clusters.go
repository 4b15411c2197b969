package scope

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
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

// unreadable returns the state of a cluster that the hub knows and cannot read, and whether it is one.
func (g *gatherer) unreadable(cluster string) (fleet.ClusterState, bool) {
	s, known := g.clusterState(cluster)
	return s, known && !s.Answers()
}

// waitForCluster makes the scope wait for a cluster that the hub is connecting to.
func (g *gatherer) waitForCluster(cluster string) {
	s, known := g.clusterState(cluster)
	if !known || s.Reachability != fleet.Connecting {
		return
	}
	g.waitSince(s.Since)
}

// waitForKind makes the scope wait for a kind that is being read for the first time.
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

// unreadableResult returns the result of an object whose cluster cannot be read, with its last known state if there is one.
func unreadableResult(r healthscope.Result, s fleet.ClusterState, last string) healthscope.Result {
	message := s.Problem()
	if last != "" {
		message += lastSeen + last
	}
	return unknownFor(r, s.Reachability.Reason(), "%s", message)
}

// lastState returns the last known state of a culprit.
func lastState(c corev1alpha2.Culprit) string {
	switch _, last, found := strings.Cut(c.Cause, lastSeen); {
	case found:
		return last
	case c.State == string(healthscope.Unknown):
		return ""
	case c.Reason != "":
		return fmt.Sprintf("%s (%s)", c.State, c.Reason)
	default:
		return c.State
	}
}

// clusterReachability is which clusters of a scope are Connected.
type clusterReachability struct {
	// clusters are all clusters, and stale those that are not Connected, both sorted.
	clusters, stale []string
	// reason and message are those of the condition ClustersReachable.
	reason  Reason
	message string
}

// clusterReachabilityOf returns which clusters of a judgement are Connected. state returns the state of a cluster; false when it is not known.
func clusterReachabilityOf(v judgement, state func(string) (fleet.ClusterState, bool)) clusterReachability {
	s := clusterReachability{clusters: clustersOf(v), reason: ReasonAllReachable, message: "every cluster of the scope is Connected"}
	worst := -1
	var texts []string
	for _, name := range s.clusters {
		c, known := state(name)
		rank, reason := slices.Index(fleet.Reachabilities(), c.Reachability), Reason(c.Reachability)
		switch {
		case !known:
			rank, reason = len(fleet.Reachabilities()), ReasonClusterUnknown
		case c.Reachable():
			continue
		}
		s.stale = append(s.stale, name)
		if rank > worst {
			worst, s.reason = rank, reason
		}
		texts = append(texts, fmt.Sprintf("%s: %s", name, reason))
	}
	if len(s.stale) > 0 {
		s.message = fmt.Sprintf("%d of %d clusters are not Connected: %s", len(s.stale), len(s.clusters), strings.Join(texts, ", "))
	}
	return s
}

// setLastSeen sets when the clusters that are not Connected were seen last. For a cluster that
// has not been read since the hub started, the time is carried over from the previous status.
func setLastSeen(next *corev1alpha2.HealthScopeStatus, before []corev1alpha2.AppStatus, s clusterReachability, state func(string) (fleet.ClusterState, bool)) {
	if len(s.stale) == 0 {
		return
	}
	lastSeen := map[appCluster]*metav1.Time{}
	for _, a := range before {
		for _, c := range a.Clusters {
			lastSeen[appCluster{a.Name, c.Name}] = c.LastSeen
		}
	}
	for _, a := range next.Apps {
		for i := range a.Clusters {
			c := &a.Clusters[i]
			if !slices.Contains(s.stale, c.Name) {
				continue
			}
			c.LastSeen = lastSeen[appCluster{a.Name, c.Name}]
			if known, ok := state(c.Name); ok && !known.LastSeen.IsZero() {
				c.LastSeen = metaTime(known.LastSeen)
			}
		}
	}
}
