package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/healthscope"
)

// clusterView is what a view holds of one cluster.
type clusterView struct {
	state ClusterState
	// bundles are those of the cluster, as they were judged last, whatever is shown of them.
	bundles map[types.NamespacedName]*Bundle
	// own is how many of them a monitor of ours has filled, foreign how many another one, and written when that did so last, by the cluster's clock.
	own, foreign int
	written      time.Time
	// reader reads bundles from the cluster; nil until it has been read once.
	reader rest.Interface
	// access is how the cluster is reached; nil until it has been read once.
	access *Access
}

// shown returns what is to be shown of a bundle: nothing of a cluster that has not been read yet.
func (c *clusterView) shown(b *Bundle) *Bundle {
	switch {
	case b == nil || c.state.Reachability == Connecting || c.state.Reachability == Refused:
		return nil
	case c.state.isStale(b.Own):
		return b.StaleIn(c.state)
	case !b.Outdated.IsZero():
		return b.stale(healthscope.ReasonMonitorStale, b.OutdatedMessage(), b.Outdated)
	default:
		return b
	}
}

// OutdatedMessage returns why a bundle is Outdated, as text.
func (b *Bundle) OutdatedMessage() string {
	return fmt.Sprintf("cluster %q: the objects of bundle %q have changed, and its monitor has not written that", b.Cluster, b.Namespace+"/"+b.Name)
}

// Clusters returns the names of all known clusters, sorted; the hub's own is among them.
func (v *View) Clusters() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.clusters))
}

// State returns what is known of a cluster itself; false when there is no cluster of that name. Before it is known which
// clusters there are, any may be one, and is not connected yet.
func (v *View) State(cluster string) (ClusterState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch c, ok := v.clusters[cluster]; {
	case ok:
		return c.now(), true
	case v.complete:
		return ClusterState{}, false
	default:
		return ClusterState{Name: cluster, Reachability: Connecting, Message: "it is not known yet which clusters there are"}, true
	}
}

// now returns the state with the time when the cluster was seen last.
func (c *clusterView) now() ClusterState {
	s := c.state
	if s.Unwatched {
		s.LastSeen = c.written
	}
	return s
}

// States returns what is known of all clusters, sorted by name.
func (v *View) States() []ClusterState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := make([]ClusterState, 0, len(v.clusters))
	for _, c := range v.clusters {
		all = append(all, c.now())
	}
	slices.SortFunc(all, func(a, b ClusterState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Unreadable returns the clusters that cannot be read, among them those that have not been read yet; nil when there are none.
func (v *View) Unreadable() map[string]ClusterState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all map[string]ClusterState
	for name, c := range v.clusters {
		if c.state.Answers() {
			continue
		}
		if all == nil {
			all = map[string]ClusterState{}
		}
		all[name] = c.now()
	}
	return all
}

// Arrivals returns how many clusters have come into sight for the first time. What is read of the view after it knows of all of these.
func (v *View) Arrivals() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.arrivals
}

// setState stores what is known of a cluster, and shows its bundles accordingly. A cluster that is not known becomes so.
func (v *View) setState(s ClusterState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.clusters[s.Name]
	var old *ClusterState
	if c == nil {
		c = &clusterView{bundles: map[types.NamespacedName]*Bundle{}}
		v.clusters[s.Name] = c
	} else {
		old = new(c.state)
	}
	s.Arrival = c.state.Arrival
	if s.Reachable() && s.Arrival == 0 {
		v.arrivals++
		s.Arrival = v.arrivals
	}
	c.state = s
	v.checkSynced()
	if old != nil && old.sameAs(s) {
		return
	}
	v.changed(Clusters, ClusterChange{s.Name})
	if old != nil && (old.Arrival != s.Arrival || old.Labels != s.Labels) {
		v.changed(Clusters, SelectionChange{})
	}
	for _, b := range c.bundles {
		v.show(b.BundleKey, c.shown(b))
	}
}

// removeCluster removes a cluster with all of its bundles.
func (v *View) removeCluster(cluster string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.clusters[cluster]
	if c == nil {
		return
	}
	delete(v.clusters, cluster)
	v.changed(Clusters, ClusterChange{cluster})
	for _, b := range c.bundles {
		v.show(b.BundleKey, nil)
	}
}

// CompleteFor reports whether the view has all bundles that exist in a namespace of a cluster, so that one that it does not
// have does not exist. A cluster that is not known has none, once it is known which clusters there are.
func (v *View) CompleteFor(cluster, namespace string) bool {
	return v.completeFor(cluster, func(s ClusterState) bool { return s.reads(namespace) })
}

// CompleteForAll is CompleteFor for all namespaces of a cluster.
func (v *View) CompleteForAll(cluster string) bool {
	return v.completeFor(cluster, func(s ClusterState) bool { return s.namespaces == "" })
}

func (v *View) completeFor(cluster string, reads func(ClusterState) bool) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c := v.clusters[cluster]
	if c == nil {
		return v.complete
	}
	return c.state.Answers() && !c.state.unreadable && reads(c.state)
}

// names returns the names of the bundles of a cluster, also of those that are not shown.
func (v *View) names(cluster string) []types.NamespacedName {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c := v.clusters[cluster]; c != nil {
		return slices.Collect(maps.Keys(c.bundles))
	}
	return nil
}

// judged returns a bundle as it was judged last, whatever is shown of it; nil when there is none.
func (v *View) judged(key BundleKey) *Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c := v.clusters[key.Cluster]; c != nil {
		return c.bundles[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
	}
	return nil
}

// filled reports whether a cluster has bundles that a HealthScope monitor has filled, and bundles that another one has.
func (v *View) filled(cluster string) (own, foreign bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c := v.clusters[cluster]
	return c != nil && c.own > 0, c != nil && c.foreign > 0
}

// written returns when another monitor than ours has filled a bundle of a cluster last, by that cluster's clock.
func (v *View) written(cluster string) (at time.Time) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c := v.clusters[cluster]; c != nil {
		at = c.written
	}
	return at
}

// count counts a bundle that comes, or goes, by who has filled it.
func (c *clusterView) count(b *Bundle, n int) {
	switch {
	case b == nil:
	case b.Own:
		c.own += n
	case b.Observed:
		c.foreign += n
		c.written = later(c.written, b.Written)
	}
}

// put stores a bundle, or with nil removes it. Of a cluster that is not known it stores nothing.
func (v *View) put(key BundleKey, b *Bundle) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.clusters[key.Cluster]
	if c == nil {
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	old := c.bundles[name]
	c.count(old, -1)
	c.count(b, 1)
	if b == nil {
		delete(c.bundles, name)
	} else {
		c.bundles[name] = b
	}
	v.show(key, c.shown(b))
}

// show shows a bundle, or with nil shows it no more.
func (v *View) show(key BundleKey, b *Bundle) {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	old := v.bundles[name][key.Cluster]
	v.label(old, b)
	if b == nil {
		v.hide(name, key.Cluster)
	} else {
		if v.bundles[name] == nil {
			v.bundles[name] = map[string]*Bundle{}
		}
		v.bundles[name][key.Cluster] = b
		if v.namespaces[key.Namespace] == nil {
			v.namespaces[key.Namespace] = map[types.NamespacedName]struct{}{}
		}
		v.namespaces[key.Namespace][name] = struct{}{}
	}
	if !sameWrite(old, b) {
		v.bundleChanged(Writes, old, b)
	}
	if !same(old, b) {
		v.bundleChanged(Bundles, old, b)
	}
}

// label puts a bundle, in place of the old one, where its labels lead to it.
func (v *View) label(old, b *Bundle) {
	if old != nil {
		for l := range old.places() {
			delete(v.labelled[l], old.BundleKey)
			if len(v.labelled[l]) == 0 {
				delete(v.labelled, l)
			}
		}
	}
	if b != nil {
		for l := range b.places() {
			if v.labelled[l] == nil {
				v.labelled[l] = map[BundleKey]*Bundle{}
			}
			v.labelled[l][b.BundleKey] = b
		}
	}
}

func (v *View) hide(name types.NamespacedName, cluster string) {
	delete(v.bundles[name], cluster)
	if len(v.bundles[name]) > 0 {
		return
	}
	delete(v.bundles, name)
	delete(v.namespaces[name.Namespace], name)
	if len(v.namespaces[name.Namespace]) == 0 {
		delete(v.namespaces, name.Namespace)
	}
}
