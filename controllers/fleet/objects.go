package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// DefaultFindInterval is the default of Objects.FindInterval.
const DefaultFindInterval = 30 * time.Second

// SettleTime is how long a kind may take to be read for the first time before
// its objects are called Unknown for that reason. A slow API server is no problem:
// with 10 seconds for an answer it takes 30 to find out how a kind is served, and 10 more to list it.
const SettleTime = 90 * time.Second

// discoveryTimeout is the deadline of a request that finds out how a kind is served.
const discoveryTimeout = time.Minute

// Kind is a kind of objects in one cluster.
type Kind struct {
	// Cluster is the name of the cluster.
	Cluster string
	schema.GroupVersionKind
}

// Objects watches kinds of objects on demand, in all clusters, and holds the raw
// Result and the labels of each object, made as it comes in; the objects themselves are not
// kept. A kind is watched as long as a scope wants it. It is safe for concurrent use.
type Objects struct {
	// FindInterval is how often a cluster is asked again for what it serves, as long
	// as a scope wants a kind that it does not serve. It must not be changed once something is wanted.
	FindInterval time.Duration

	labels []string
	user   rules.UserRules
	// clock is that of the fleet, as soon as Setup has been called.
	clock clock.WithTickerAndDelayedExecution

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // The life of the informers, which start on demand: Start's context, as in controller-runtime's cache.
	clusters map[string]*objectCluster
	kinds    map[place]*kindInformer
	wants    map[types.NamespacedName]map[Kind]struct{}
	users    map[Kind]int
	// changes is what changes are added to.
	changes *Subscription
}

// place is where a kind is watched: in one namespace of a cluster whose namespaces are limited, and else in all of them.
type place struct {
	Kind

	namespace string
}

// access is how the objects of a cluster are read; client is nil as long as they are not.
type access struct {
	client    dynamic.Interface
	discovery *apiDiscovery
	meter     *meter
}

// objectCluster is a cluster in which objects can be watched.
type objectCluster struct {
	access

	namespaces []string
	state      ClusterState
}

// NewObjects returns an Objects that knows no cluster yet. allowedLabels are
// the label keys that Results carry, user the user's rules or nil. It must be started before anything is wanted of it.
func NewObjects(allowedLabels []string, user rules.UserRules) *Objects {
	return &Objects{
		FindInterval: DefaultFindInterval,
		labels:       allowedLabels, user: user, clock: clock.RealClock{},
		clusters: map[string]*objectCluster{},
		kinds:    map[place]*kindInformer{},
		wants:    map[types.NamespacedName]map[Kind]struct{}{},
		users:    map[Kind]int{},
		changes:  NewSubscription(),
	}
}

// Start runs the watches until ctx ends, and returns a subscription to what changes: ObjectChange and KindChange. When it
// is called again, after that, it begins with what is wanted from then on.
func (o *Objects) Start(ctx context.Context) *Subscription {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx != nil {
		for _, w := range o.kinds {
			w.stop()
		}
		clear(o.kinds)
		clear(o.wants)
		clear(o.users)
	}
	o.ctx, o.changes = ctx, NewSubscription()
	for kind := range o.users {
		o.ensure(kind) //nolint:contextcheck // It uses the context that is kept.
	}
	return o.changes
}

// Attach makes a cluster known, or another way to it. What is wanted of it is
// read again; until it has been, the results from before stay. Setup calls it for the clusters of a fleet.
func (o *Objects) Attach(cluster string, a Access) error {
	way, err := a.open(o.clock)
	if err != nil {
		return errors.Wrapf(err, "cannot make a client for cluster %q", cluster)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.known(cluster)
	known.access, known.namespaces = way, a.Namespaces
	if known.state.Reachability == "" {
		known.state.Reachability = Connected // Nothing sets the state of a cluster without a fleet.
	}
	o.renew(cluster, known.state)
	return nil
}

// open returns the clients of an Access.
func (a Access) open(c clock.PassiveClock) (way access, err error) {
	if a.Client == nil {
		if a.Client, err = rest.HTTPClientFor(a.Config); err != nil {
			return way, err
		}
	}
	way.meter = a.meter
	if way.client, err = dynamic.NewForConfigAndClient(a.Config, a.Client); err != nil {
		return way, err
	}
	way.discovery, err = discover(a.Config, a.Client.Transport, c)
	return way, err
}

// known returns a cluster, which becomes known if it is not.
func (o *Objects) known(cluster string) *objectCluster {
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
	for at, w := range o.kinds {
		if at.Cluster == cluster {
			w.stop()
			delete(o.kinds, at)
		}
	}
	o.changedIn(cluster)
}

// setState sets the state of a cluster. What is watched in one that comes back is read again: it may have been away for too
// long for the watches to notice.
func (o *Objects) setState(s ClusterState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.known(s.Name)
	before := known.state
	known.state = s
	if s.Answers() == before.Answers() {
		return
	}
	if s.Answers() && before.Reachability != Connecting && before.Reachability != "" {
		o.renew(s.Name, before)
	}
	o.changedIn(s.Name)
}

// renew reads again what is wanted of a cluster. What was known holds until it has been, as that of a cluster in the state away.
func (o *Objects) renew(cluster string, away ClusterState) {
	known := o.clusters[cluster]
	for at, w := range o.kinds {
		switch {
		case at.Cluster != cluster:
		case slices.Contains(known.places(), at.namespace):
			w.renew(known.access, away)
		default:
			w.stop()
			delete(o.kinds, at)
		}
	}
	for kind := range o.users {
		if kind.Cluster == cluster {
			o.ensure(kind)
		}
	}
}

// changedIn adds a change of each kind of a cluster that is wanted.
func (o *Objects) changedIn(cluster string) {
	for kind := range o.users {
		if kind.Cluster == cluster {
			o.changes.Add(KindChange{kind})
		}
	}
}

// Want sets which kinds are watched for a scope, in place of those before. A kind that no scope wants any more is not
// watched any more.
func (o *Objects) Want(who types.NamespacedName, kinds map[Kind]struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.wants[who]
	if len(kinds) == 0 {
		delete(o.wants, who)
	} else {
		o.wants[who] = kinds
	}
	for kind := range kinds {
		if _, ok := before[kind]; !ok {
			o.users[kind]++
		}
		o.ensure(kind)
	}
	for kind := range before {
		if _, ok := kinds[kind]; !ok {
			o.drop(kind)
		}
	}
}

// drop counts one less who wants a kind, and ends its watch when that was the last.
func (o *Objects) drop(kind Kind) {
	o.users[kind]--
	if o.users[kind] > 0 {
		return
	}
	delete(o.users, kind)
	for at, w := range o.kinds {
		if at.Kind == kind {
			w.stop()
			delete(o.kinds, at)
		}
	}
}

// ensure starts to watch a kind, unless it is watched already.
func (o *Objects) ensure(kind Kind) {
	known := o.clusters[kind.Cluster]
	if known == nil || known.client == nil || o.ctx == nil || o.ctx.Err() != nil {
		return
	}
	for _, namespace := range known.places() {
		at := place{kind, namespace}
		if o.kinds[at] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(o.ctx)
		w := newKindInformer(o, at, known.access, o.changes, cancel)
		o.kinds[at] = w
		go w.run(ctx)
	}
}

// places are the namespaces in which kinds are watched, one of which may stand for all.
func (c *objectCluster) places() []string {
	if len(c.namespaces) == 0 {
		return []string{""}
	}
	return c.namespaces
}

// Refresh reads all kinds that are wanted again, because rules have changed. As objects are not kept there is no other
// way. Until a kind has been read what was known of it holds, also in a cluster that cannot be seen.
func (o *Objects) Refresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, known := range o.clusters {
		o.renew(name, known.state)
	}
}
