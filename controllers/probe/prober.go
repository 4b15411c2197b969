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

// Clusters are the part of fleet.View by which clusters are reached.
type Clusters interface {
	State(cluster string) (fleet.ClusterState, bool)
	Access(cluster string) (fleet.Access, bool)
	Subscribe(topics fleet.Topic) (changes *fleet.Subscription, cancel func())
}

// Options configure a Prober.
type Options struct {
	// Clusters are the clusters that there are.
	Clusters Clusters
	// Clock is the clock. The default is the machine's.
	Clock clock.WithTickerAndDelayedExecution
}

// Prober probes Services for scopes. It is safe for concurrent use.
type Prober struct {
	Options

	queue workqueue.TypedDelayingInterface[key]
	// inFlight has room for the probes that may be made at once.
	inFlight chan struct{}

	mu sync.Mutex
	// ctx is the life of what runs; nil before Run.
	ctx context.Context //nolint:containedctx // Watches start on demand, as in fleet.Objects.
	// wants are what scopes want, and targets are what is probed for each.
	wants   map[types.NamespacedName]*probe.Want
	targets map[types.NamespacedName]map[probe.Ref]*target
	// services are the places in which a scope wants probes, and paces are when places were probed last.
	services map[place]*services
	paces    map[place]*probe.Pace
	running  sync.WaitGroup
	// notify is called for each scope for which there may be another report.
	notify func(types.NamespacedName)
}

// Setup adds a Prober to a manager.
func Setup(mgr ctrl.Manager, o Options) (*Prober, error) {
	p := New(o)
	return p, errors.Wrap(mgr.Add(manager.RunnableFunc(p.Run)), "cannot add the probes")
}

// New returns a Prober, which probes once it runs.
func New(o Options) *Prober {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Prober{
		Options:  o,
		queue:    workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{Clock: o.Clock}),
		inFlight: make(chan struct{}, maxInFlight),
		wants:    map[types.NamespacedName]*probe.Want{}, targets: map[types.NamespacedName]map[probe.Ref]*target{},
		services: map[place]*services{}, paces: map[place]*probe.Pace{},
		notify: func(types.NamespacedName) {},
	}
}

// Subscribe calls changed for every scope for which there may be another report. changed must not block.
func (p *Prober) Subscribe(changed func(scope types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = changed
}

// Run probes until ctx ends. When it returns nothing of it runs any more.
func (p *Prober) Run(ctx context.Context) error {
	changes, cancel := p.Clusters.Subscribe(fleet.Clusters)
	defer cancel()
	p.mu.Lock()
	p.ctx = ctx
	p.watch() //nolint:contextcheck // It uses the context that is kept.
	p.mu.Unlock()
	var reading sync.WaitGroup
	reading.Go(func() { changes.Deliver(ctx, p.clusterChanged) })
	reading.Go(func() { p.work(ctx) })
	<-ctx.Done()
	p.queue.ShutDown()
	reading.Wait()
	p.running.Wait()
	return nil
}

// clusterChanged reads Services again of a cluster that is reached in another way.
func (p *Prober) clusterChanged(c fleet.Change) {
	changed, ok := c.(fleet.ClusterChange)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, s := range p.services {
		if at.cluster == changed.Cluster {
			s.follow()
		}
	}
}

// servicesChanged notifies of the scopes that want probes in a place.
func (p *Prober) servicesChanged(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for scope, want := range p.wants {
		if scope.Namespace == at.namespace && slices.Contains(want.Clusters, at.cluster) {
			p.notify(scope)
		}
	}
}

// Want sets what is probed for a scope in place of what was before, and returns what is known of it. Without a want nothing is.
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
		p.watch()
	}
	if want == nil {
		return probe.Report{}
	}
	return p.report(scope, want)
}

// watch reads the Services of those places in which a scope wants probes, and of no others.
func (p *Prober) watch() {
	if p.ctx == nil || p.ctx.Err() != nil {
		return
	}
	wanted := map[place]struct{}{}
	for scope, want := range p.wants {
		for _, cluster := range want.Clusters {
			wanted[place{cluster, scope.Namespace}] = struct{}{}
		}
	}
	for at, s := range p.services {
		if _, ok := wanted[at]; !ok {
			s.stop()
			delete(p.services, at)
		}
	}
	for at := range wanted {
		if p.services[at] == nil {
			ctx, stop := context.WithCancel(p.ctx)
			s := p.newServices(at, stop)
			p.services[at] = s
			p.running.Go(func() { s.run(ctx) })
		}
	}
	now := p.Clock.Now()
	maps.DeleteFunc(p.paces, func(at place, pace *probe.Pace) bool { return p.services[at] == nil && pace.Idle(now) })
}

// report returns what is known of the probes of a scope, and probes the Services that it names and no others.
func (p *Prober) report(scope types.NamespacedName, want *probe.Want) (r probe.Report) {
	before, targets := p.targets[scope], map[probe.Ref]*target{}
	for _, cluster := range want.Clusters {
		s := p.services[place{cluster, scope.Namespace}]
		if s == nil {
			r.Unread = append(r.Unread, probe.Unread{Cluster: cluster, Since: p.Clock.Now()})
			continue
		}
		if unread, is := s.unread(); is {
			r.Unread = append(r.Unread, unread)
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
				targets[ref] = p.target(key{scope, ref}, before[ref], t)
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

// target returns the target that there is if it is the same, and else begins to probe another one.
func (p *Prober) target(k key, before *target, now target) *target {
	if before != nil && before.uid == now.uid && before.address == now.address && before.spec == now.spec {
		return before
	}
	if before != nil && before.uid == now.uid && before.address == now.address && before.spec.Path == now.spec.Path && before.spec.Method == now.spec.Method {
		now.history = before.history // It is asked the same at other times.
	}
	p.queue.Add(k)
	return &now
}
