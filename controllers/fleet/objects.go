package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Objects watches kinds of objects on demand, in all clusters, and holds the raw
// Result and the labels of each object, which it computes when the object comes in; it does not keep
// the objects themselves. A kind is watched as long as a scope wants it. It is safe for concurrent use.
type Objects struct {
	kindOptions

	// mu guards the fields below.
	mu         sync.Mutex
	ctx        context.Context //nolint:containedctx // The life of the informers, which start on demand: Start's context, as in controller-runtime's cache.
	clusters   map[string]*objectCluster
	kinds      map[informerKey]*kindInformer
	wanted     map[types.NamespacedName]map[Kind]struct{}
	wantCounts map[Kind]int
}

// objectCluster is a cluster in which objects can be watched.
type objectCluster struct {
	// clients are the clients of the connection in use; they read nothing until the cluster is attached.
	clients atomic.Pointer[clusterClients]
	state   ClusterState
}

// Lookup is what is known of one object.
type Lookup struct {
	// Result is raw: the result of the rule for the kind, NotPresent when the object does not exist, or Unknown with the reason why it cannot be read.
	Result healthscope.Result
	// Labels are all labels of the object, as they were last read.
	Labels LabelSet
	// Resources are the first 20 resources that the object names in status.resources, and Named is the number of all of them.
	Resources []Resource
	Named     int
	// Status is the first KiB of the status, as JSON, of an object for which there is no rule; empty for all others.
	Status string
	// Syncing is true while the result is Unknown only because the initial list of the kind, or of its cluster, is not complete; for InitialSyncTimeout at most.
	Syncing bool
	// Since is since when the object has been Syncing. Listing is true when objects of the kind are being delivered, and the initial list is not complete.
	Since   time.Time
	Listing bool
	// LastState is the last known state of an object whose cluster is unreachable; empty when there is none, or the cluster is reachable.
	LastState healthscope.State
	// Application is the content of a KubeVela Application, as it was last read; nil for other kinds, and when unknown.
	Application *kubevela.Application
	// Component is the object's component in an Application, according to KubeVela's labels; nil without these labels, and when the object is unknown.
	Component *kubevela.Component
}

// Selection is what is known of the objects that a selector matches.
type Selection struct {
	// Objects are the objects that have been read, sorted by name, each as Get returns it.
	Objects []Lookup
	// Others is what Get returns for any other object: NotPresent when there are no others, and otherwise Unknown with the reason why others cannot be read.
	Others Lookup
}

// NewObjects returns an Objects without clusters. allowedLabels are the label keys
// that Results carry. userRules may be nil. The caller calls Start before Want.
func NewObjects(allowedLabels []string, userRules rules.UserRules) *Objects {
	return &Objects{
		kindOptions: kindOptions{FindInterval: DefaultFindInterval, labelKeys: allowedLabels, userRules: userRules, clock: clock.RealClock{}, changes: NewSubscription()},
		clusters:    map[string]*objectCluster{},
		kinds:       map[informerKey]*kindInformer{},
		wanted:      map[types.NamespacedName]map[Kind]struct{}{},
		wantCounts:  map[Kind]int{},
	}
}

// Start runs the watches until ctx ends, and returns a subscription to what changes: ObjectChange and KindChange. It is called once.
func (o *Objects) Start(ctx context.Context) *Subscription {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ctx = ctx
	return o.changes
}

// Want replaces the kinds that are watched for a scope. A kind that no scope wants any more is not
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
	changed := sets.New[string]()
	for kind := range kinds {
		if _, ok := before[kind]; !ok {
			if o.wantCounts[kind]++; o.wantCounts[kind] == 1 {
				changed.Insert(kind.Cluster)
			}
		}
	}
	for kind := range before {
		if _, ok := kinds[kind]; !ok {
			if o.wantCounts[kind]--; o.wantCounts[kind] == 0 {
				delete(o.wantCounts, kind)
				changed.Insert(kind.Cluster)
			}
		}
	}
	if len(changed) > 0 {
		o.sync(changed, nil)
	}
}

// namespacesOf returns the namespaces that informers read in a cluster: none without access, and one that is empty for all.
func (o *Objects) namespacesOf(cluster string) []string {
	if known := o.clusters[cluster]; known != nil && known.clients.Load().client != nil {
		return known.clients.Load().watchNamespaces()
	}
	return nil
}

// sync starts and ends informers so that those of some clusters read the wanted kinds in the namespaces that may be read. Unless
// staleState is nil, those that read already begin again. Their results stay until then, as those of a cluster in staleState.
func (o *Objects) sync(clusters sets.Set[string], staleState *ClusterState) {
	for at, k := range o.kinds {
		switch {
		case !clusters.Has(at.Cluster):
		case o.wantCounts[at.Kind] == 0 || !slices.Contains(o.namespacesOf(at.Cluster), at.namespace):
			k.stop()
			delete(o.kinds, at)
		case staleState != nil:
			k.relist(*staleState)
		}
	}
	if o.ctx == nil || o.ctx.Err() != nil {
		return
	}
	for kind := range o.wantCounts {
		if !clusters.Has(kind.Cluster) {
			continue
		}
		for _, namespace := range o.namespacesOf(kind.Cluster) {
			if at := (informerKey{kind, namespace}); o.kinds[at] == nil {
				known := o.clusters[kind.Cluster]
				ctx, cancel := context.WithCancel(o.ctx)
				k := newKindInformer(o.kindOptions, at, known.state.Local, &known.clients, cancel)
				o.kinds[at] = k
				go k.run(ctx)
			}
		}
	}
}

// Attach adds a cluster, or replaces the access to it. It reads the wanted kinds
// again; until then the previous results stay. Setup calls it for the clusters of a fleet.
func (o *Objects) Attach(cluster string, a Access) error {
	clients, err := a.open(o.clock)
	if err != nil {
		return errors.Wrapf(err, "cannot make a client for cluster %q", cluster)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.ensureCluster(cluster)
	known.clients.Store(&clients)
	if known.state.Reachability == "" {
		known.state.Reachability = Connected // Nothing sets the state of a cluster without a fleet.
	}
	o.sync(sets.New(cluster), &known.state)
	return nil
}

// ensureCluster returns a cluster, and adds it if necessary.
func (o *Objects) ensureCluster(cluster string) *objectCluster {
	if o.clusters[cluster] == nil {
		o.clusters[cluster] = &objectCluster{}
		o.clusters[cluster].clients.Store(&clusterClients{})
	}
	return o.clusters[cluster]
}

// Detach removes a cluster with all that is watched there.
func (o *Objects) Detach(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clusters, cluster)
	o.sync(sets.New(cluster), nil)
	o.notifyKinds(cluster)
}

// setState sets the state of a cluster. It reads kinds again in a cluster that answers again: the watches may not notice an
// outage that was too long for them. In the hub's own cluster, it does so with the kinds that are not watched.
func (o *Objects) setState(s ClusterState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.ensureCluster(s.Name)
	before := known.state
	known.state = s
	if s.outage.since.IsZero() && !before.outage.since.IsZero() {
		for at, k := range o.kinds {
			if state := k.informer.State(); at.Cluster == s.Name && !state.IsWatched() && state.Status != observe.Pending {
				k.relist(before)
			}
		}
	}
	if s.Answers() == before.Answers() {
		return
	}
	if s.Answers() && before.Reachability != Connecting && before.Reachability != "" {
		o.sync(sets.New(s.Name), &before)
	}
	o.notifyKinds(s.Name)
}

// notifyKinds adds a change of each wanted kind of a cluster.
func (o *Objects) notifyKinds(cluster string) {
	for kind := range o.wantCounts {
		if kind.Cluster == cluster {
			o.changes.Add(KindChange{kind})
		}
	}
}

// Refresh reads all wanted kinds again, because rules have changed and the objects are not kept. Until a kind has been
// read, its previous results stay, also in a cluster that is unreachable.
func (o *Objects) Refresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, known := range o.clusters {
		o.sync(sets.New(name), &known.state)
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
// matches. In a cluster that is unreachable, it matches the labels that were last read.
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

// visibilityOf returns the visibility of the objects of a kind in a namespace. Its others has the given name.
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
	clients := known.clients.Load()
	if len(clients.Namespaces) > 0 {
		at.namespace = name.Namespace
	}
	k, state := o.kinds[at], known.state
	switch {
	case !clients.Reads(name.Namespace):
		unknown.Reason, unknown.Message = healthscope.ReasonForbidden, fmt.Sprintf("the Secret of cluster %q does not name namespace %q among those that may be read", cluster, name.Namespace)
		return visibility{others: Lookup{Result: unknown}}
	case state.Reachability == Connecting, k == nil && clients.client == nil && state.Answers():
		return visibility{others: settlingLookup(unknown, state.Since, o.clock.Now())}
	case !state.Answers():
		return visibility{kind: k, staleState: &state, others: unreachableLookup(unknown, state)}
	case k == nil:
		return visibility{others: Lookup{Result: unknown, Syncing: true, Since: o.clock.Now()}}
	}
	return k.visibility(unknown, !state.outage.since.IsZero())
}
