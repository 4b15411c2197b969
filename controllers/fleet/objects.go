package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Objects watches kinds of objects on demand, in all clusters, and holds the raw
// Result and the labels of each object, made as it comes in; the objects themselves are not
// kept. A kind is watched as long as a scope wants it. It is safe for concurrent use.
type Objects struct {
	// FindInterval is how often a cluster is asked again for what it serves, as long
	// as a scope wants a kind that it does not serve. It must not be changed once something is wanted.
	FindInterval time.Duration

	labelKeys []string
	userRules rules.UserRules
	// clock is that of the fleet, as soon as Setup has been called.
	clock clock.WithTickerAndDelayedExecution

	mu         sync.Mutex
	ctx        context.Context //nolint:containedctx // The life of the informers, which start on demand: Start's context, as in controller-runtime's cache.
	clusters   map[string]*objectCluster
	kinds      map[informerKey]*kindInformer
	wanted     map[types.NamespacedName]map[Kind]struct{}
	wantCounts map[Kind]int
	// changes is what changes are added to.
	changes *Subscription
}

// objectCluster is a cluster in which objects can be watched.
type objectCluster struct {
	clusterClients

	namespaces []string
	state      ClusterState
}

// Lookup is the answer to a question for one object.
type Lookup struct {
	// Result is raw: what the rule for the kind says of the object, NotPresent when it does not exist, or Unknown with the reason why it cannot be seen.
	Result healthscope.Result
	// Labels are all labels of the object, as they were read last.
	Labels LabelSet
	// Resources are what the object names in status.resources, the first 20 of Named.
	Resources []Resource
	Named     int
	// Status is the status of an object that no rule can judge, as JSON, the first KiB of it; empty for all others.
	Status string
	// Settling is true while the kind is being read for the first time, SettleTime at most, or its cluster is, and the answer is Unknown for that reason only.
	Settling bool
	// Since is since when the object is settling. Arriving is true when it is because objects of the kind are being delivered, and there are more to come.
	Since    time.Time
	Arriving bool
	// LastState is the state that was known last of an object whose cluster cannot be seen; empty when none was, or the cluster is seen.
	LastState healthscope.State
	// Application is what an Application of KubeVela says, as far as its cluster was last seen; nil for other kinds, and when it is not known.
	Application *kubevela.Application
	// Component is what KubeVela's labels say of the object's place in an Application; nil where there are none, and when the object is not known.
	Component *kubevela.Component
}

// Selection is the answer to a question for the objects that a selector matches.
type Selection struct {
	// Objects are those that have been read, sorted by name, each as Get returns it.
	Objects []Lookup
	// Others is what Get returns of any other object: NotPresent when there are no others, else Unknown with the reason why those there may be cannot be seen.
	Others Lookup
}

// NewObjects returns an Objects that knows no cluster yet. allowedLabels are
// the label keys that Results carry, user the user's rules or nil. It must be started before anything is wanted of it.
func NewObjects(allowedLabels []string, userRules rules.UserRules) *Objects {
	return &Objects{
		FindInterval: DefaultFindInterval,
		labelKeys:    allowedLabels, userRules: userRules, clock: clock.RealClock{},
		clusters:   map[string]*objectCluster{},
		kinds:      map[informerKey]*kindInformer{},
		wanted:     map[types.NamespacedName]map[Kind]struct{}{},
		wantCounts: map[Kind]int{},
		changes:    NewSubscription(),
	}
}

// Start runs the watches until ctx ends, and returns a subscription to what changes: ObjectChange and KindChange. When it
// is called again, after that, it begins with what is wanted from then on.
func (o *Objects) Start(ctx context.Context) *Subscription {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.kinds {
		k.stop()
	}
	clear(o.kinds)
	clear(o.wanted)
	clear(o.wantCounts)
	o.ctx, o.changes = ctx, NewSubscription()
	return o.changes
}

// Want sets which kinds are watched for a scope, in place of those before. A kind that no scope wants any more is not
// watched any more.
func (o *Objects) Want(scope types.NamespacedName, kinds map[Kind]struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.wanted[scope]
	if len(kinds) == 0 {
		delete(o.wanted, scope)
	} else {
		o.wanted[scope] = kinds
	}
	for kind := range kinds {
		if _, ok := before[kind]; !ok {
			o.wantCounts[kind]++
		}
		o.ensureInformers(kind)
	}
	for kind := range before {
		if _, ok := kinds[kind]; !ok {
			o.removeWant(kind)
		}
	}
}

// drop counts one less who wants a kind, and ends its watch when that was the last.
func (o *Objects) removeWant(kind Kind) {
	o.wantCounts[kind]--
	if o.wantCounts[kind] > 0 {
		return
	}
	delete(o.wantCounts, kind)
	for at, k := range o.kinds {
		if at.Kind == kind {
			k.stop()
			delete(o.kinds, at)
		}
	}
}

// ensure starts to watch a kind, unless it is watched already.
func (o *Objects) ensureInformers(kind Kind) {
	known := o.clusters[kind.Cluster]
	if known == nil || known.client == nil || o.ctx == nil || o.ctx.Err() != nil {
		return
	}
	for _, namespace := range known.watchNamespaces() {
		at := informerKey{kind, namespace}
		if o.kinds[at] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(o.ctx)
		k := newKindInformer(o, at, cancel)
		o.kinds[at] = k
		go k.run(ctx)
	}
}

// places are the namespaces in which kinds are watched, one of which may stand for all.
func (c *objectCluster) watchNamespaces() []string {
	if len(c.namespaces) == 0 {
		return []string{""}
	}
	return c.namespaces
}

// Attach makes a cluster known, or another way to it. What is wanted of it is
// read again; until it has been, the results from before stay. Setup calls it for the clusters of a fleet.
func (o *Objects) Attach(cluster string, a Access) error {
	clients, err := a.open(o.clock)
	if err != nil {
		return errors.Wrapf(err, "cannot make a client for cluster %q", cluster)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.ensureCluster(cluster)
	known.clusterClients, known.namespaces = clients, a.Namespaces
	if known.state.Reachability == "" {
		known.state.Reachability = Connected // Nothing sets the state of a cluster without a fleet.
	}
	o.relist(cluster, known.state)
	return nil
}

// open returns the clients of an Access.
func (a Access) open(c clock.PassiveClock) (clients clusterClients, err error) {
	if a.Client == nil {
		if a.Client, err = rest.HTTPClientFor(a.Config); err != nil {
			return clients, err
		}
	}
	clients.meter = a.meter
	if clients.client, err = dynamic.NewForConfigAndClient(a.Config, a.Client); err != nil {
		return clients, err
	}
	clients.discovery, err = newAPIDiscoveryFor(a.Config, a.Client.Transport, c)
	return clients, err
}

// accessOf returns how to read the objects of a cluster.
func (o *Objects) clientsOf(cluster string) (clusterClients, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.clusters[cluster]; known != nil && known.client != nil {
		return known.clusterClients, nil
	}
	return clusterClients{}, errors.Errorf("no way to cluster %q is known", cluster)
}

// known returns a cluster, which becomes known if it is not.
func (o *Objects) ensureCluster(cluster string) *objectCluster {
	if o.clusters[cluster] == nil {
		o.clusters[cluster] = &objectCluster{}
	}
	return o.clusters[cluster]
}

// Detach removes a cluster with all that is watched there.
func (o *Objects) Detach(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clusters, cluster)
	for at, k := range o.kinds {
		if at.Cluster == cluster {
			k.stop()
			delete(o.kinds, at)
		}
	}
	o.notifyKinds(cluster)
}

// setState sets the state of a cluster. What is watched in one that comes back is read again: it may have been away for too
// long for the watches to notice.
func (o *Objects) setState(s ClusterState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.ensureCluster(s.Name)
	before := known.state
	known.state = s
	if s.Answers() == before.Answers() {
		return
	}
	if s.Answers() && before.Reachability != Connecting && before.Reachability != "" {
		o.relist(s.Name, before)
	}
	o.notifyKinds(s.Name)
}

// renew reads again what is wanted of a cluster. What was known holds until it has been, as that of a cluster in the state away.
func (o *Objects) relist(cluster string, staleState ClusterState) {
	known := o.clusters[cluster]
	for at, k := range o.kinds {
		switch {
		case at.Cluster != cluster:
		case slices.Contains(known.watchNamespaces(), at.namespace):
			k.relist(staleState)
		default:
			k.stop()
			delete(o.kinds, at)
		}
	}
	for kind := range o.wantCounts {
		if kind.Cluster == cluster {
			o.ensureInformers(kind)
		}
	}
}

// changedIn adds a change of each kind of a cluster that is wanted.
func (o *Objects) notifyKinds(cluster string) {
	for kind := range o.wantCounts {
		if kind.Cluster == cluster {
			o.changes.Add(KindChange{kind})
		}
	}
}

// Refresh reads all kinds that are wanted again, because rules have changed. As objects are not kept there is no other
// way. Until a kind has been read what was known of it holds, also in a cluster that cannot be seen.
func (o *Objects) Refresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, known := range o.clusters {
		o.relist(name, known.state)
	}
}

// Get returns what is known of an object of a kind that is wanted. A kind that is not wanted stays settling.
func (o *Objects) Get(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) Lookup {
	s := o.visibilityOf(cluster, gvk, name)
	if s.kind != nil {
		if kept, ok := s.kind.store.Get(name); ok {
			return s.lookup(kept)
		}
	}
	if s.others.Result.State == healthscope.NotPresent {
		s.others.Result.Message = fmt.Sprintf("%s %q does not exist in namespace %q", gvk.Kind, name.Name, name.Namespace)
	}
	return s.others
}

// Select returns what is known of the objects of a kind that is wanted, in a namespace of a cluster, whose labels a selector
// matches. Of a cluster that cannot be seen it matches the labels that were read last.
func (o *Objects) Select(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) Selection {
	s := o.visibilityOf(cluster, gvk, types.NamespacedName{Namespace: namespace})
	found := Selection{Others: s.others}
	if s.kind == nil {
		return found
	}
	for _, kept := range s.kind.store.In(namespace, func(l *Lookup) bool { return selector.Matches(l.Labels) }) {
		found.Objects = append(found.Objects, s.lookup(kept))
	}
	slices.SortFunc(found.Objects, func(a, b Lookup) int { return strings.Compare(a.Result.Name, b.Result.Name) })
	return found
}

// sight is how the objects of a kind in a namespace of a cluster can be seen.
type visibility struct {
	// kind holds those that have been read; nil when none of them says anything now.
	kind *kindInformer
	// away is the state of their cluster, which cannot be seen; nil when it can.
	staleState *ClusterState
	// others is what is known of an object that has not been read.
	others Lookup
}

// lookup returns what is to be said of an object that has been read.
func (s visibility) lookup(kept *Lookup) Lookup {
	found := *kept
	if s.staleState == nil {
		return found
	}
	stale := healthscope.MarkUnreachable([]healthscope.Member{{Result: kept.Result}}, s.staleState.Reachability.Reason(), s.staleState.Problem(), s.staleState.Since)[0]
	found.Result, found.LastState = stale.Result, stale.LastState
	return found
}

// look returns how the objects of a kind in a namespace can be seen, and names that of which nothing has been read.
func (o *Objects) visibilityOf(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) visibility {
	unknown := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: gvk.Group, Kind: gvk.Kind, Namespace: name.Namespace, Name: name.Name},
		Version: gvk.Version, State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced,
		Message: "the objects of this kind have not been read yet",
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.clusters[cluster]
	if known == nil {
		unknown.Reason, unknown.Message = healthscope.ReasonUnknownCluster, fmt.Sprintf("no cluster %q is known", cluster)
		return visibility{others: Lookup{Result: unknown}}
	}
	at := informerKey{Kind{cluster, gvk}, ""}
	if len(known.namespaces) > 0 {
		at.namespace = name.Namespace
	}
	attached := known.client != nil
	k, state, allowed := o.kinds[at], known.state, at.namespace == "" || slices.Contains(known.namespaces, at.namespace)
	switch {
	case !allowed:
		unknown.Reason, unknown.Message = healthscope.ReasonForbidden, fmt.Sprintf("the Secret of cluster %q does not name namespace %q among those that may be read", cluster, name.Namespace)
		return visibility{others: Lookup{Result: unknown}}
	case state.Reachability == Connecting, k == nil && !attached && state.Answers():
		return visibility{others: settlingLookup(unknown, state.Since, o.clock.Now())}
	case !state.Answers():
		return visibility{kind: k, staleState: &state, others: unreachableLookup(unknown, state)}
	case k == nil:
		return visibility{others: Lookup{Result: unknown, Settling: true, Since: o.clock.Now()}}
	}
	return k.visibility(unknown)
}

// look returns how the objects of the kind can be seen in a cluster that is seen. The caller has the lock of objects.
func (k *kindInformer) visibility(unknown healthscope.Result) visibility {
	switch state := k.informer.State(); {
	case state.Status == observe.Ready:
		unknown.State, unknown.Reason, unknown.Message = healthscope.NotPresent, healthscope.ReasonNotFound, ""
		return visibility{kind: k, others: Lookup{Result: unknown}}
	case state.Status == observe.Problem:
		unknown.Reason, unknown.Message = k.reasonOf(state.Reason), state.Message
		return visibility{others: Lookup{Result: unknown}}
	case !k.store.IsRead() || k.objects.clock.Since(k.since) >= SettleTime:
		others := settlingLookup(unknown, k.since, k.objects.clock.Now())
		others.Arriving = others.Settling && k.answered.Load() && !state.IsFailing()
		return visibility{others: others}
	}
	return visibility{kind: k, staleState: new(k.staleState), others: unreachableLookup(unknown, k.staleState)}
}

// settling is the answer while an object is being read for the first time, since a moment.
func settlingLookup(unknown healthscope.Result, since, now time.Time) Lookup {
	return Lookup{Result: unknown, Settling: now.Sub(since) < SettleTime, Since: since}
}

// unseen returns the answer for an object that was never seen, in a cluster that cannot be seen.
func unreachableLookup(unknown healthscope.Result, s ClusterState) Lookup {
	unknown.Reason, unknown.Message, unknown.Since = s.Reachability.Reason(), s.Problem(), s.Since
	return Lookup{Result: unknown}
}
