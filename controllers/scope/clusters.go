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
// for a moment. After it, what has not been read is Unknown, and all else is judged.
const connectGrace = 20 * time.Second

// firstGrace is the same for a scope that has no status yet and waits for what gives no answer. For a kind whose objects are arriving
// it waits as long as other scopes, however many they are, so that one write is enough.
const firstGrace = 2 * time.Second

// lastSeen separates the message on a resource whose cluster cannot be read from its last known state, as in healthscope.MarkUnreachable.
const lastSeen = "; last seen "

// unreadable returns the state of a cluster that the hub knows and cannot read, and whether it is one.
func (g *gatherer) unreadable(cluster string) (fleet.ClusterState, bool) {
	s, known := g.state(cluster)
	return s, known && !s.Answers()
}

// await makes the scope wait for a cluster that is being connected to.
func (g *gatherer) await(cluster string) {
	s, known := g.state(cluster)
	if !known || s.Reachability != fleet.Connecting {
		return
	}
	g.waitFor(s.Since)
}

// awaitKind makes the scope wait for a kind that is being read for the first time.
func (g *gatherer) awaitKind(l fleet.Lookup) {
	switch {
	case l.Arriving:
		g.waitUpTo(connectGrace, l.Since)
	case l.Settling:
		g.waitFor(l.Since)
	}
}

// waitFor makes the scope wait for something that is being read for the first time since a moment. A scope without a
// status waits less: it has no status to keep meanwhile, and "unknown" is better than none.
func (g *gatherer) waitFor(since time.Time) {
	if g.scope.Status.ObservedGeneration <= 0 {
		g.waitUpTo(firstGrace, since)
	} else {
		g.waitUpTo(connectGrace, since)
	}
}

// waitUpTo makes the scope wait until some time after a moment.
func (g *gatherer) waitUpTo(grace time.Duration, since time.Time) {
	if wait := since.Add(grace).Sub(g.now); wait > 0 {
		g.out.settling = max(g.out.settling, min(wait, grace))
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

// clusterReach is which clusters of a scope are Connected.
type clusterReach struct {
	// clusters are all clusters, and stale those that are not Connected, both sorted.
	clusters, stale []string
	// reason and message are those of the condition ClustersReachable.
	reason  Reason
	message string
}

// reachOf returns which clusters of a judgement are Connected. state returns the state of a cluster; false when it is not known.
func reachOf(v judgement, state func(string) (fleet.ClusterState, bool)) clusterReach {
	s := clusterReach{clusters: clustersOf(v), reason: ReasonAllReachable, message: "every cluster of the scope is Connected"}
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

// setLastSeen sets when the clusters that are stale were seen last. For one that
// has not been read since the hub started, it is carried over from the status before.
func setLastSeen(next *corev1alpha2.HealthScopeStatus, before []corev1alpha2.AppStatus, s clusterReach, state func(string) (fleet.ClusterState, bool)) {
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
