package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/healthscope/healthscope/healthscope"
)

// View holds the judged bundles of all clusters. It is safe for concurrent use.
type View struct {
	// secrets holds the Secrets of members; nil without members.
	secrets cache.Cache

	cluster string
	synced  chan struct{}
	// refresh makes all members read again the bundles that the hub judges by rules.
	refresh func()

	mu sync.RWMutex
	// complete is true once all clusters are known, and clustersTimedOut when that took longer than membersGrace.
	complete, clustersTimedOut bool
	// clusters are all known clusters with all of their bundles, and firstSyncs is the number of clusters that have been Connected at least once.
	clusters   map[string]*clusterView
	firstSyncs uint64
	// bundles and byLabel are indexes of the bundles that are shown.
	bundles map[types.NamespacedName]map[string]*Bundle
	byLabel map[labelKey]map[BundleKey]*Bundle
	// rejected are the Secrets that are rejected.
	rejected []RejectedSecret
	// usedRatios returns how much clusters use of their budgets.
	usedRatios func() map[string]map[string]float64
	// record is RecordEvents.
	record func(context.Context) error
	// subscriptions receive the changes.
	subscriptions map[*Subscription]Topic
}

// clusterView is what a view holds of one cluster.
type clusterView struct {
	state ClusterState
	// bundles are the bundles of the cluster as they were last judged, independent of what is shown.
	bundles map[types.NamespacedName]*Bundle
	// own is the number of bundles that HealthScope's monitor fills, and foreign the number that another monitor fills. lastForeignWrite
	// is when that one last wrote a bundle, by the cluster's clock.
	own, foreign     int
	lastForeignWrite time.Time
	// access is how the cluster is reached; nil until it has been read once.
	access *Access
}

// shown returns the bundle as the view shows it; nil while the cluster has not been read yet, and in a namespace that may not be read any more.
func (c *clusterView) shown(b *Bundle) *Bundle {
	switch {
	case b == nil || c.state.Reachability == Connecting || c.state.Reachability == Refused || !c.state.reads(b.Namespace):
		return nil
	case c.state.isStale(b.Own):
		return b.StaleIn(c.state)
	case !b.OutdatedSince.IsZero():
		return b.stale(healthscope.ReasonMonitorStale, b.OutdatedMessage(), b.OutdatedSince)
	default:
		return b
	}
}

// currentState returns the state with an up-to-date LastSeen.
func (c *clusterView) currentState() ClusterState {
	s := c.state
	if s.Unmonitored {
		s.LastSeen = c.lastForeignWrite
	}
	return s
}

// countBundle adds n to the count of the bundle's monitor, and updates lastForeignWrite.
func (c *clusterView) countBundle(b *Bundle, n int) {
	switch {
	case b == nil:
	case b.Own:
		c.own += n
	case b.Observed:
		c.foreign += n
		c.lastForeignWrite = later(c.lastForeignWrite, b.WrittenAt)
	}
}

// RejectedSecret is a Secret that cannot have the cluster name it requests, so that the hub does not add a cluster for it.
type RejectedSecret struct {
	// Name is the name of the Secret.
	Name string `json:"name"`
	// Message says why it is rejected.
	Message string `json:"message"`

	secret corev1.ObjectReference
}

// newView returns a view that knows the hub's own cluster, which has not been read yet.
func newView(cluster string) *View {
	v := &View{
		cluster:       cluster,
		synced:        make(chan struct{}),
		refresh:       func() {},
		usedRatios:    func() map[string]map[string]float64 { return nil },
		clusters:      map[string]*clusterView{},
		bundles:       map[types.NamespacedName]map[string]*Bundle{},
		byLabel:       map[labelKey]map[BundleKey]*Bundle{},
		subscriptions: map[*Subscription]Topic{},
	}
	v.clusters[cluster] = &clusterView{state: ClusterState{Name: cluster, Local: true, Reachability: Connecting}, bundles: map[types.NamespacedName]*Bundle{}}
	return v
}

// Secrets returns the cache of the Secrets of members, and of no others; nil without Options.Members. The fleet starts it.
func (v *View) Secrets() cache.Cache { return v.secrets }

// RecordEvents makes the fleet record events on the Secrets of members until ctx ends. Only the leader calls it, so that an
// event is recorded once. It first records the earlier warnings that still hold.
func (v *View) RecordEvents(ctx context.Context) error { return v.record(ctx) }

// Cluster returns the name of the cluster the hub itself is in.
func (v *View) Cluster() string { return v.cluster }

// WaitSynced blocks until the bundles of the hub's own cluster have all been
// judged once, and it is known which other clusters there are, or ctx ends. For
// the latter it waits membersGrace at most.
func (v *View) WaitSynced(ctx context.Context) error {
	select {
	case <-v.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Synced reports whether WaitSynced would return at once.
func (v *View) Synced() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// Ready returns nil once the view is synced, and until then an error that says what is missing. It is suitable for a readiness check.
func (v *View) Ready() error {
	if v.Synced() {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.isLocalSynced() {
		return errors.New("the Secrets of clusters have not been read yet")
	}
	return errors.New(cmp.Or(v.clusters[v.cluster].state.Message, "the bundles have not been read yet"))
}

// Complete reports whether all clusters are known.
func (v *View) Complete() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.complete
}

// setComplete notes that all clusters are known.
func (v *View) setComplete() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.complete {
		v.complete = true
		v.notify(Clusters, CompleteChange{})
	}
	v.checkSynced()
}

// setClustersTimedOut notes that the clusters were not known within membersGrace.
func (v *View) setClustersTimedOut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clustersTimedOut = true
	v.checkSynced()
}

// checkSynced ends WaitSynced if the view is synced. The caller holds the lock.
func (v *View) checkSynced() {
	if v.isLocalSynced() && (v.complete || v.clustersTimedOut) && !v.Synced() {
		close(v.synced)
	}
}

// isLocalSynced reports whether the bundles of the hub's own cluster have been judged.
func (v *View) isLocalSynced() bool {
	own := v.clusters[v.cluster].state
	return own.synced && own.Reachability != Connecting
}

// Bundle returns a bundle; nil when there is none, or nothing has been read of its cluster yet.
func (v *View) Bundle(key BundleKey) *Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.bundles[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}][key.Cluster]
}

// Named returns the bundles of that name in all clusters, sorted by cluster.
func (v *View) Named(namespace, name string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(maps.Values(v.bundles[types.NamespacedName{Namespace: namespace, Name: name}]))
}

// Select returns the bundles of a namespace that a selector matches, in all
// clusters, sorted. It looks at those only that have a label which the selector asks for, if there is one.
func (v *View) Select(namespace string, selector labels.Selector) []*Bundle {
	key, value, _ := RequiredLabel(selector)
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for _, b := range v.byLabel[labelKey{namespace, key, value}] {
			if selector.Matches(labels.Set(b.Labels)) && !yield(b) {
				return
			}
		}
	})
}

// RequiredLabel returns a label that every match of a selector has; false when the selector
// does not require a single label. It always returns the same label for a selector.
func RequiredLabel(selector labels.Selector) (key, value string, ok bool) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return r.Key(), values[0], true
			}
		default:
		}
	}
	return "", "", false
}

// All returns all bundles, sorted.
func (v *View) All() []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for _, byCluster := range v.bundles {
			for _, b := range byCluster {
				if !yield(b) {
					return
				}
			}
		}
	})
}

func sortedBundles(bundles func(func(*Bundle) bool)) []*Bundle {
	return slices.SortedFunc(bundles, func(a, b *Bundle) int { return a.Compare(b.BundleKey) })
}

// Refresh reads the bundles again of clusters in which other monitors than HealthScope's fill some, because rules have
// changed: the hub judges these, and does not keep the objects. Until a bundle has been read it is shown as it was.
func (v *View) Refresh() { v.refresh() }

// Access returns how a cluster is reached by the connection in use; false when it has not been read yet, or is not known.
// There is a ClusterChange when it is reached in another way.
func (v *View) Access(cluster string) (Access, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c := v.clusters[cluster]
	if c == nil || c.access == nil {
		return Access{}, false
	}
	return *c.access, true
}

// setAccess sets how a cluster is reached.
func (v *View) setAccess(cluster string, a Access) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.clusters[cluster]; c != nil {
		c.access = &a
		v.notify(Clusters, ClusterChange{cluster})
	}
}

// Clusters returns the names of all known clusters, sorted; the hub's own is among them.
func (v *View) Clusters() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.clusters))
}

// State returns what is known of a cluster itself; false when there is no cluster of that name. Until all
// clusters are known, every name counts as a cluster that is Connecting.
func (v *View) State(cluster string) (ClusterState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch c, ok := v.clusters[cluster]; {
	case ok:
		return c.currentState(), true
	case v.complete:
		return ClusterState{}, false
	default:
		return ClusterState{Name: cluster, Reachability: Connecting, Message: "it is not known yet which clusters there are"}, true
	}
}

// States returns what is known of all clusters, sorted by name.
func (v *View) States() []ClusterState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := make([]ClusterState, 0, len(v.clusters))
	for _, c := range v.clusters {
		all = append(all, c.currentState())
	}
	slices.SortFunc(all, func(a, b ClusterState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Unreadable returns the clusters that cannot be read, among them those that have not been read yet.
func (v *View) Unreadable() map[string]ClusterState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := map[string]ClusterState{}
	for name, c := range v.clusters {
		if !c.state.Answers() {
			all[name] = c.currentState()
		}
	}
	return all
}

// NeverSynced returns the states of the clusters of which nothing has been read since the hub started, sorted by name.
func (v *View) NeverSynced() []ClusterState {
	return slices.DeleteFunc(v.States(), func(s ClusterState) bool { return s.synced })
}

// FirstSyncs returns the number of clusters that have been Connected at least once. Later reads of the view include all of them.
func (v *View) FirstSyncs() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.firstSyncs
}

// Outage returns the state that the hub's own cluster would have if it were another one, while its API server does not
// answer; false while it does. State does not show that, and the cluster's bundles stay as they are: what depends on them
// could be written only when the outage is over. Outage is for readers that write nothing.
func (v *View) Outage() (ClusterState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	state := v.clusters[v.cluster].currentState()
	if state.outage.since.IsZero() {
		return ClusterState{}, false
	}
	state.Reachability, state.Message, state.unreadable = Unreachable, state.outage.cause, false
	state.Since, state.LastSeen = state.outage.since, state.outage.since
	return state, true
}

// RejectedSecrets returns the Secrets that are rejected, the oldest first.
func (v *View) RejectedSecrets() []RejectedSecret {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Clone(v.rejected)
}

// setRejected notes which Secrets are rejected.
func (v *View) setRejected(rejected []RejectedSecret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(v.rejected, rejected) {
		v.rejected = rejected
		v.notify(Clusters, RejectionChange{})
	}
}

// ListByLabel returns the bundles with a label in all namespaces of all clusters, sorted. The label is one that
// identifies what a bundle reports: emco/deployment-id, or k8splugin.io/rb-instance-id. Others find nothing.
func (v *View) ListByLabel(key, value string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(maps.Values(v.byLabel[labelKey{"", key, value}]))
}

// ListByLabelIn is ListByLabel for one cluster.
func (v *View) ListByLabelIn(cluster, key, value string) []*Bundle {
	return slices.DeleteFunc(v.ListByLabel(key, value), func(b *Bundle) bool { return b.Cluster != cluster })
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

// monitors reports whether HealthScope's monitor fills bundles of a cluster, whether another monitor does, and when that one last
// wrote a bundle, by the cluster's clock.
func (v *View) monitors(cluster string) (own, foreign bool, lastForeignWrite time.Time) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c := v.clusters[cluster]
	if c == nil {
		return false, false, time.Time{}
	}
	return c.own > 0, c.foreign > 0, c.lastForeignWrite
}

// judged returns a bundle as it was last judged, independent of what is shown; nil when there is none.
func (v *View) judged(key BundleKey) *Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c := v.clusters[key.Cluster]; c != nil {
		return c.bundles[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
	}
	return nil
}

// names returns the names of the bundles of a cluster, including those that are not shown.
func (v *View) names(cluster string) []types.NamespacedName {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c := v.clusters[cluster]; c != nil {
		return slices.Collect(maps.Keys(c.bundles))
	}
	return nil
}

// setState stores the state of a cluster, and shows its bundles accordingly. It adds the cluster if it is not known.
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
	s.FirstSync = c.state.FirstSync
	if s.Reachable() && s.FirstSync == 0 {
		v.firstSyncs++
		s.FirstSync = v.firstSyncs
	}
	c.state = s
	v.checkSynced()
	if old != nil && old.sameAs(s) {
		return
	}
	v.notify(Clusters, ClusterChange{s.Name})
	if old != nil && (old.FirstSync != s.FirstSync || old.Labels != s.Labels) {
		v.notify(Clusters, SelectionChange{})
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
	v.notify(Clusters, ClusterChange{cluster})
	v.notify(Clusters, SelectionChange{})
	for _, b := range c.bundles {
		v.show(b.BundleKey, nil)
	}
}

// put stores a bundle; nil removes it. It ignores bundles of unknown clusters.
func (v *View) put(key BundleKey, b *Bundle) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.clusters[key.Cluster]
	if c == nil {
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	old := c.bundles[name]
	c.countBundle(old, -1)
	c.countBundle(b, 1)
	if b == nil {
		delete(c.bundles, name)
	} else {
		c.bundles[name] = b
	}
	v.show(key, c.shown(b))
}

// show shows a bundle; nil hides it.
func (v *View) show(key BundleKey, b *Bundle) {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	old := v.bundles[name][key.Cluster]
	v.updateIndex(old, b)
	switch {
	case b == nil:
		delete(v.bundles[name], key.Cluster)
		if len(v.bundles[name]) == 0 {
			delete(v.bundles, name)
		}
	case v.bundles[name] == nil:
		v.bundles[name] = map[string]*Bundle{key.Cluster: b}
	default:
		v.bundles[name][key.Cluster] = b
	}
	if !sameVersion(old, b) {
		v.notifyBundle(Writes, old, b)
	}
	if !bundlesEqual(old, b) {
		v.notifyBundle(Bundles, old, b)
	}
}

// updateIndex replaces the old bundle by b in byLabel.
func (v *View) updateIndex(old, b *Bundle) {
	if old != nil {
		for l := range old.labelKeys() {
			delete(v.byLabel[l], old.BundleKey)
			if len(v.byLabel[l]) == 0 {
				delete(v.byLabel, l)
			}
		}
	}
	if b != nil {
		for l := range b.labelKeys() {
			if v.byLabel[l] == nil {
				v.byLabel[l] = map[BundleKey]*Bundle{}
			}
			v.byLabel[l][b.BundleKey] = b
		}
	}
}

// Subscribe returns a subscription to the changes from now on, until cancel is called.
func (v *View) Subscribe(topics Topic) (s *Subscription, cancel func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.subscribe(NewSubscription(), topics)
}

// SubscribeFromStart is Subscribe with the existing state: the subscription starts with a change of each existing cluster and bundle.
func (v *View) SubscribeFromStart(topics Topic) (s *Subscription, cancel func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s = NewSubscription()
	if topics&Clusters != 0 {
		for name := range v.clusters {
			s.Add(ClusterChange{name})
		}
	}
	if topics&(Bundles|Writes) != 0 {
		for _, byCluster := range v.bundles {
			for _, b := range byCluster {
				s.Add(BundleChange{b.BundleKey, NewLabelSet(b.Labels)})
			}
		}
	}
	return v.subscribe(s, topics)
}

// subscribe adds a subscription. The caller holds the lock.
func (v *View) subscribe(s *Subscription, topics Topic) (_ *Subscription, cancel func()) {
	v.subscriptions[s] = topics
	return s, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.subscriptions, s)
	}
}

// notify adds a change to the subscriptions to a topic. The caller holds the lock.
func (v *View) notify(topic Topic, c Change) {
	for s, topics := range v.subscriptions {
		if topics&topic != 0 {
			s.Add(c)
		}
	}
}

// notifyBundle is notify for a bundle. old is nil when it was added, and now when it was removed.
func (v *View) notifyBundle(topic Topic, old, now *Bundle) {
	if old != nil {
		v.notify(topic, BundleChange{old.BundleKey, NewLabelSet(old.Labels)})
	}
	if now != nil && (old == nil || !maps.Equal(old.Labels, now.Labels)) {
		v.notify(topic, BundleChange{now.BundleKey, NewLabelSet(now.Labels)})
	}
}
