package inventory

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai/plan"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// Deletion guards tell what is unknown from what does not exist: nothing is deleted from A&AI because a cluster is
// unreachable, a bundle does not name all resources, or a scope has not been judged with all clusters and bundles.

// clusters is the part of fleet.View that knows which clusters exist, and which of them can be seen.
type clusters interface {
	WaitSynced(ctx context.Context) error
	Complete() bool
	States() []fleet.ClusterState
}

// anyNamespace stands for every namespace where something is kept by namespace.
const anyNamespace = ""

// guards are what a pass needs to know about all scopes, bundles and clusters.
type guards struct {
	// complete and clusters are what they were computed with.
	complete bool
	clusters []fleet.ClusterState
	// existing are the names of all clusters; nil while these are not known.
	existing []string
	// deletions are those of deletionGuards, and unjudged and partial those of oldestUnjudged.
	deletions map[plan.Partition]string
	unjudged  map[string]candidate
	partial   bool
}

// currentGuards returns the guards. It computes them again, from all scopes, only after a change that may alter them.
func (i *inputs) currentGuards(complete bool, clusters []fleet.ClusterState) *guards {
	same := func(a, b fleet.ClusterState) bool {
		return a.Name == b.Name && a.Reachability == b.Reachability && a.FirstSync == b.FirstSync
	}
	if g := i.guards; g != nil && g.complete == complete && slices.EqualFunc(g.clusters, clusters, same) {
		return g
	}
	g := &guards{complete: complete, clusters: slices.Clone(clusters), deletions: i.deletionGuards(complete, clusters)}
	g.unjudged, g.partial = i.oldestUnjudged()
	if complete {
		for _, c := range clusters {
			g.existing = append(g.existing, c.Name)
		}
	}
	i.guards = g
	return g
}

// deletionGuards returns the partitions whose documents must not be deleted, with the reason. complete is true when states covers all clusters.
func (i *inputs) deletionGuards(complete bool, states []fleet.ClusterState) map[plan.Partition]string {
	if !complete {
		return map[plan.Partition]string{{}: "it is not known yet which clusters there are"}
	}
	guards := map[plan.Partition]string{}
	cross := i.crossNamespaces()
	guard := func(cluster, namespace, why string) {
		if cross[namespace] {
			namespace = anyNamespace
		}
		part := plan.Partition{Source: cluster, Namespace: namespace}
		if before, ok := guards[part]; !ok || why < before { // The same one each time, in whatever order they come.
			guards[part] = why
		}
	}
	for key, b := range i.bundles {
		if b.incomplete != "" {
			guard(key.Cluster, key.Namespace, b.incomplete)
		}
	}
	for _, s := range i.scopes {
		for at, why := range s.incomplete {
			guard(at.cluster, at.namespace, why)
		}
	}
	i.guardUnjudged(states, guard)
	for _, s := range states {
		if !s.Reachable() {
			guards[plan.Partition{Source: s.Name}] = fmt.Sprintf("cluster %q cannot be seen as it is now: it is %s", s.Name, s.Reachability)
		}
	}
	return guards
}

// allJudged reports whether every scope has been judged by its present spec. With states, it has been judged also since the last of these clusters came into sight.
func (i *inputs) allJudged(states []fleet.ClusterState) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	allJudged := true
	i.guardUnjudged(states, func(string, string, string) { allJudged = false })
	return allJudged
}

// guardUnjudged calls guard for each namespace that has a scope which has not been judged, and for each cluster that has
// come into sight since a scope of the namespace was judged: the scope may have resources there that it knows nothing of
// yet. For the latter no scope is named: with each that is judged, another would be.
func (i *inputs) guardUnjudged(states []fleet.ClusterState, guard func(cluster, namespace, why string)) {
	var latest uint64
	for _, s := range states {
		latest = max(latest, s.FirstSync)
	}
	first, arrivals := map[string]types.NamespacedName{}, map[string]uint64{}
	for name, s := range i.scopes {
		if before, ok := first[name.Namespace]; s.unjudged() && (!ok || compareNames(name, before) < 0) {
			first[name.Namespace] = name
		}
		if before, ok := arrivals[name.Namespace]; s.arrivals() < latest && (!ok || s.arrivals() < before) {
			arrivals[name.Namespace] = s.arrivals()
		}
	}
	for namespace, name := range first {
		guard("", namespace, fmt.Sprintf("scope %q has not been judged", name))
	}
	for namespace, least := range arrivals {
		for _, s := range states {
			if s.FirstSync > least {
				guard(s.Name, namespace, fmt.Sprintf("not all scopes of namespace %q have been judged since cluster %q came into sight", namespace, s.Name))
			}
		}
	}
}

// oldestUnjudged returns the oldest scope of each namespace that has never been judged; under anyNamespace the oldest of
// those whose bundles may name resources of every namespace. Such a scope may claim what a younger one owns: after a
// restart, A&AI would show another owner for a moment. A scope's resources are in its own namespace, or wherever
// bundles there name them: elsewhere a scope that waits long for a cluster delays nothing.
//
// partial is true when the present spec of a scope has not been judged, also when an older one has.
func (i *inputs) oldestUnjudged() (oldest map[string]candidate, partial bool) {
	oldest = map[string]candidate{}
	cross := i.crossNamespaces()
	for name, s := range i.scopes {
		partial = partial || s.unjudged()
		if !s.exists() || s.judged != nil {
			continue
		}
		namespace := name.Namespace
		if cross[namespace] {
			namespace = anyNamespace
		}
		by := candidate{NamespacedName: name}
		if before, ok := oldest[namespace]; !ok || i.compareAge(by, before) < 0 {
			oldest[namespace] = by
		}
	}
	return oldest, partial
}

// crossNamespaces returns the namespaces whose bundles may name resources of other namespaces, as far as a hub can know:
// the namespaces that a monitor trusts are in the configuration of that monitor.
func (i *inputs) crossNamespaces() map[string]bool {
	all := map[string]bool{}
	for _, namespace := range i.trusted {
		all[namespace] = true
	}
	for key, b := range i.bundles {
		if b.crossNamespace {
			all[key.Namespace] = true
		}
	}
	return all
}

// sameGuards reports whether a scope gives the same guards in another state.
func (s scopeState) sameGuards(o scopeState) bool {
	return s.created.Equal(o.created) && s.unjudged() == o.unjudged() && s.arrivals() == o.arrivals() &&
		maps.Equal(s.incomplete, o.incomplete)
}

// unjudged reports whether the present spec of a scope has not been judged.
func (s scopeState) unjudged() bool {
	return s.exists() && (s.judged == nil || s.judged.Generation < s.generation)
}

// arrivals returns how many clusters had come into sight when the scope was judged. What has no judgement waits for none.
func (s scopeState) arrivals() uint64 {
	if s.judged == nil {
		return math.MaxUint64
	}
	return s.judged.FirstSyncs
}

// incompleteIn returns, by where a bundle is, why the judgement of a scope does not know all that the bundle names. The
// judgement may be older than what is known of the bundle now.
func incompleteIn(name types.NamespacedName, judged *scope.Judged) map[clusterNamespace]string {
	incomplete := map[clusterNamespace]string{}
	if judged == nil {
		return incomplete
	}
	for _, p := range judged.Members {
		if p.Kind == k8spluginv1alpha1.ResourceBundleStateKind && (p.Reason == healthscope.ReasonMalformedBundle || p.Reason == healthscope.ReasonNotObserved) {
			incomplete[clusterNamespace{p.Cluster, p.Namespace}] = fmt.Sprintf("bundle %q, which scope %q refers to, does not name its resources: %s", p.Namespace+"/"+p.Name, name, p.Reason)
		}
	}
	for _, cluster := range judged.Partial {
		at := clusterNamespace{cluster, name.Namespace}
		if incomplete[at] == "" { // It lasts until the next judgement, also when its cause is over before.
			incomplete[at] = fmt.Sprintf("scope %q has been judged without all that there is in cluster %q", name, cluster)
		}
	}
	return incomplete
}

// newBundleState returns what deletions must know of a bundle. What the bundle has once named, it may name still when it
// does not name all. all is true when every bundle goes to A&AI.
func newBundleState(b *fleet.Bundle, before bundleState, all bool) bundleState {
	s := bundleState{crossNamespace: before.crossNamespace || slices.ContainsFunc(b.Members, func(m healthscope.Member) bool { return m.Namespace != b.Namespace })}
	if all {
		s.claimed = b
	}
	because := func(defect string) string {
		return fmt.Sprintf("bundle %q does not name all resources: it is %s", b.Namespace+"/"+b.Name, defect)
	}
	switch {
	case b.Truncated:
		s.incomplete = because("truncated")
	case len(b.Malformed) > 0:
		s.incomplete = because("not readable")
	case !b.Observed && all:
		s.incomplete = because("not filled by a monitor")
	}
	return s
}
