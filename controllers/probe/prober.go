package probe

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// Clusters is the part of fleet.View that gives access to clusters.
type Clusters interface {
	State(cluster string) (fleet.ClusterState, bool)
	Access(cluster string) (fleet.Access, bool)
	Subscribe(topics fleet.Topic) (changes *fleet.Subscription, cancel func())
}

// Options configure a Prober.
type Options struct {
	// Clusters gives access to the clusters.
	Clusters Clusters
	// Clock is the clock. The default is the machine's.
	Clock clock.WithTickerAndDelayedExecution
}

// Prober probes Services for scopes. It is safe for concurrent use.
type Prober struct {
	Options

	queue workqueue.TypedDelayingInterface[key]

	mu sync.Mutex
	// ctx is the context of watches and probes; nil before Run.
	ctx context.Context //nolint:containedctx // Watches start on demand, as in fleet.Objects.
	// wants are the wants of scopes, and targets are the probed Services of each scope.
	wants   map[types.NamespacedName]*probe.Want
	targets map[types.NamespacedName]map[probe.Ref]*target
	// watches has an entry for each namespace of a cluster in which a scope wants probes. paces are the rate limits of those namespaces.
	watches map[clusterNamespace]*serviceWatch
	paces   map[clusterNamespace]*probe.Pace
	// running are the watches that have not ended.
	running sync.WaitGroup
	// notify is called for each scope whose report may have changed.
	notify func(types.NamespacedName)
}

// Setup adds a Prober to a manager.
func Setup(mgr ctrl.Manager, o Options) (*Prober, error) {
	p := New(o)
	return p, errors.Wrap(mgr.Add(manager.RunnableFunc(p.Run)), "cannot add the probes")
}

// New returns a Prober. It probes while Run runs.
func New(o Options) *Prober {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Prober{
		Options: o,
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{Clock: o.Clock}),
		wants:   map[types.NamespacedName]*probe.Want{}, targets: map[types.NamespacedName]map[probe.Ref]*target{},
		watches: map[clusterNamespace]*serviceWatch{}, paces: map[clusterNamespace]*probe.Pace{},
		notify: func(types.NamespacedName) {},
	}
}

// Subscribe calls changed for every scope whose report may have changed. changed must not block.
func (p *Prober) Subscribe(changed func(scope types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = changed
}

// Run probes until ctx ends. When it returns, all its goroutines have ended.
func (p *Prober) Run(ctx context.Context) error {
	changes, cancel := p.Clusters.Subscribe(fleet.Clusters)
	defer cancel()
	p.mu.Lock()
	p.ctx = ctx
	p.syncWatches() //nolint:contextcheck // It uses p.ctx.
	p.mu.Unlock()
	var workers sync.WaitGroup
	workers.Go(func() { changes.Deliver(ctx, p.clusterChanged) })
	workers.Go(func() { p.work(ctx) })
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
	p.running.Wait()
	return nil
}

// clusterChanged reconnects the watches of a cluster whose connection has changed.
func (p *Prober) clusterChanged(c fleet.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cn, s := range p.watches {
		if c == (fleet.ClusterChange{Cluster: cn.cluster}) {
			s.reconnect()
		}
	}
}

// servicesChanged notifies of the scopes that want probes in a namespace of a cluster.
func (p *Prober) servicesChanged(cn clusterNamespace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for scope, want := range p.wants {
		if scope.Namespace == cn.namespace && slices.Contains(want.Clusters, cn.cluster) {
			p.notify(scope)
		}
	}
}

// Want replaces the want of a scope, and returns the report on its probes. A nil want ends its probes.
func (p *Prober) Want(scope types.NamespacedName, want *probe.Want) probe.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.wants[scope]
	if want == nil {
		delete(p.wants, scope)
		delete(p.targets, scope)
	} else {
		p.wants[scope] = want
	}
	if (before == nil) != (want == nil) || want != nil && !slices.Equal(before.Clusters, want.Clusters) {
		p.syncWatches()
	}
	if want == nil {
		return probe.Report{}
	}
	return p.report(scope, want)
}

// syncWatches watches the Services of exactly those namespaces of clusters in which a scope wants probes.
func (p *Prober) syncWatches() {
	if p.ctx == nil || p.ctx.Err() != nil {
		return
	}
	wanted := map[clusterNamespace]struct{}{}
	for scope, want := range p.wants {
		for _, cluster := range want.Clusters {
			wanted[clusterNamespace{cluster, scope.Namespace}] = struct{}{}
		}
	}
	for cn, s := range p.watches {
		if _, ok := wanted[cn]; !ok {
			s.stop()
			delete(p.watches, cn)
		}
	}
	for cn := range wanted {
		if p.watches[cn] == nil {
			ctx, stop := context.WithCancel(p.ctx)
			s := p.newServiceWatch(cn, stop)
			p.watches[cn] = s
			p.running.Go(func() { s.run(ctx) })
		}
	}
	now := p.Clock.Now()
	maps.DeleteFunc(p.paces, func(cn clusterNamespace, pace *probe.Pace) bool { return p.watches[cn] == nil && pace.Idle(now) })
}

// report returns the report on the probes of a scope, and makes the Services that it wants its targets.
func (p *Prober) report(scope types.NamespacedName, want *probe.Want) (r probe.Report) {
	before, targets := p.targets[scope], map[probe.Ref]*target{}
	for _, cluster := range want.Clusters {
		s := p.watches[clusterNamespace{cluster, scope.Namespace}]
		if s == nil {
			r.Unread = append(r.Unread, probe.Unread{Cluster: cluster, Since: p.Clock.Now()})
			continue
		}
		if unreadable, ok := s.unreadable(); ok {
			r.Unread = append(r.Unread, unreadable)
		}
		for _, service := range s.store.All() {
			if !want.Wants(scope.Name, cluster, service) {
				continue
			}
			ref := probe.Ref{Cluster: cluster, Name: service.Name}
			probed := probe.Probed{Ref: ref, UID: service.UID, Component: service.Component}
			var address string
			if address, probed.Port, probed.Problem = service.Target(want.Spec); probed.Problem == "" {
				t := target{uid: service.UID, address: address, spec: want.Spec}
				targets[ref] = p.keepOrReplace(key{scope, ref}, before[ref], t)
				probed.Finding = targets[ref].history.Finding()
			}
			r.Services = append(r.Services, probed)
		}
	}
	p.targets[scope] = targets
	slices.SortFunc(r.Services, func(a, b probe.Probed) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
	return r
}

// keepOrReplace returns the existing target if the desired one is the same. Otherwise it enqueues the desired one and returns it.
func (p *Prober) keepOrReplace(k key, existing *target, desired target) *target {
	sameService := existing != nil && existing.uid == desired.uid && existing.address == desired.address
	if sameService && existing.spec == desired.spec {
		return existing
	}
	if sameService && existing.spec.Path == desired.spec.Path && existing.spec.Method == desired.spec.Method {
		desired.history = existing.history // The request is the same.
	}
	p.queue.Add(k)
	return &desired
}
