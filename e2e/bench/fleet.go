package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/e2e/bench/members"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// fleetNamespace is the namespace of the applications in the members, and of their scopes in the hub.
	fleetNamespace = "bench-fleet"
	// renewInterval is how often the monitor of a member renews its Lease.
	renewInterval = 3 * time.Second
	// tokenLifetime is how long the hub's token in a member is valid: it is not renewed in a run.
	tokenLifetime = 7 * 24 * time.Hour
)

// monitorLease is the Lease of a member's monitor.
var monitorLease = types.NamespacedName{Namespace: installation.Namespace, Name: "healthscope-monitor"}

// fleetBench is the member clusters of a hub. The same applications are in each of them, and a scope of the hub is over one application in all clusters.
type fleetBench struct {
	members *members.Fleet
	apps    []app
	scopes  []scope
	// ready and crashed are the applications' bundles, in the same order.
	ready, crashed []members.Bundle
	// down are the bundles of which a pod crashes at the moment.
	down map[slot]bool
	// lone is how long lone changes took when the hub had one member.
	lone []time.Duration
	// before and base are the controller's live heap with all members and no bundles, in bytes: before there were any, and after
	// they have gone again. Connections hold on to buffers of the size of what has come through them, as they do with bundles.
	before, base float64
	// judged says that the controller has judged everything.
	judged bool
}

// slot is a bundle: an application in a cluster, both by number.
type slot struct{ cluster, app int }

func (f *fleetBench) resources() int {
	return len(f.members.Servers) * len(f.apps) * f.apps[0].resources()
}

// newFleetBench starts the members, with applications in none of them, and creates the scopes.
func (b *bench) newFleetBench(ctx context.Context) (*fleetBench, error) {
	f := &fleetBench{down: map[slot]bool{}}
	for i := range b.options.scaled(50, 5) {
		a := app{namespace: fleetNamespace, name: fmt.Sprintf("%d-web", 1000+i), pods: 10, configMaps: 8}
		f.apps = append(f.apps, a)
		f.scopes = append(f.scopes, scope{namespace: fleetNamespace, name: a.name, apps: []app{a}})
		for crash, into := range map[bool]*[]members.Bundle{false: &f.ready, true: &f.crashed} {
			o := a.bundle()
			var err error
			if o.Status, err = reported(a, crash); err != nil {
				return nil, err
			}
			sent, err := members.NewBundle(o)
			if err != nil {
				return nil, err
			}
			*into = append(*into, sent)
		}
	}
	var err error
	if f.members, err = members.Start(ctx, members.Names("bench+edge", b.options.scaled(100, 3))); err != nil {
		return nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { f.members.Beat(beating, monitorLease, renewInterval) })
	b.closers = append(b.closers, func() error {
		stop()
		running.Wait()
		return f.members.Stop()
	})
	return f, b.createScopes(ctx, f.scopes)
}

// enrol makes clusters members of the hub, as the command clusters add does.
func (b *bench) enrol(ctx context.Context, servers []*members.Server) error {
	return each(ctx, len(servers), func(ctx context.Context, i int) error {
		e := enrol.Enrolment{
			Name: servers[i].Name, Server: servers[i].URL, Authority: b.fleet.members.Authority, SecretNamespace: corev1alpha2.DefaultClustersNamespace,
		}
		secret, err := e.Secret(enrol.Token{Value: b.fleet.members.Token, Expires: time.Now().Add(tokenLifetime), Lifetime: tokenLifetime})
		if err != nil {
			return err
		}
		return b.create(ctx, secret)
	})
}

// put makes a bundle say that all of its application is ready, or that a pod crashes.
func (f *fleetBench) put(s slot, crash bool) {
	bundles := f.ready
	if crash {
		bundles = f.crashed
	}
	f.members.Servers[s.cluster].Put(f.apps[s.app].key(), bundles[s.app])
	f.down[s] = crash
}

// fill puts all applications into the first clusters, ready.
func (f *fleetBench) fill(clusters int) {
	for i := range clusters {
		for n := range f.apps {
			f.put(slot{i, n}, false)
		}
	}
}

// empty takes all applications out of all clusters.
func (f *fleetBench) empty() {
	for _, s := range f.members.Servers {
		for _, a := range f.apps {
			s.Remove(a.key())
		}
	}
	clear(f.down)
}

// nothing checks that no scope has any resource left.
func (f *fleetBench) nothing() map[types.NamespacedName]check[*scopeView] {
	checks := map[types.NamespacedName]check[*scopeView]{}
	for _, s := range f.scopes {
		checks[s.key()] = func(v *scopeView) string {
			if v.status.Summary.Ready > 0 || v.status.Summary.Total > 1 { // The bundle itself is missing.
				return fmt.Sprintf("it has %d/%d resources", v.status.Summary.Ready, v.status.Summary.Total)
			}
			return ""
		}
	}
	return checks
}

// right checks that every scope sees so many clusters, and that all is ready in them.
func (f *fleetBench) right(clusters int) map[types.NamespacedName]check[*scopeView] {
	checks := map[types.NamespacedName]check[*scopeView]{}
	reachable := fmt.Sprintf("%d/%d", clusters, clusters)
	for i, s := range f.scopes {
		all := counts(clusters*f.apps[i].counting(), clusters*f.apps[i].counting())
		checks[s.key()] = func(v *scopeView) string {
			if v.status.ClustersReachable != reachable {
				return fmt.Sprintf("it sees %q clusters, not %q", v.status.ClustersReachable, reachable)
			}
			return all(v)
		}
	}
	return checks
}

// shows checks that a scope shows a bundle as it is.
func (f *fleetBench) shows(s slot, crash bool) map[types.NamespacedName]check[*scopeView] {
	cluster, want := f.members.Servers[s.cluster].Name, int32(f.apps[s.app].counting())
	if crash {
		want-- // The Deployment.
	}
	return map[types.NamespacedName]check[*scopeView]{f.scopes[s.app].key(): func(v *scopeView) string {
		for _, a := range v.status.Apps {
			for i := range a.Clusters {
				if c := &a.Clusters[i]; c.Name == cluster {
					if c.Ready == want && c.Total == int32(f.apps[s.app].counting()) {
						return ""
					}
					return fmt.Sprintf("%d of %d are ready in cluster %q, not %d", c.Ready, c.Total, cluster, want)
				}
			}
		}
		return fmt.Sprintf("it does not name cluster %q", cluster)
	}}
}

// flipMember changes a bundle, and returns how long it took until its scope showed that.
func (b *bench) flipMember(ctx context.Context, s slot) (time.Duration, error) {
	crash := !b.fleet.down[s]
	seen := b.plane.scopes.expect("the scope of a member's bundle", b.fleet.shows(s, crash))
	begin := time.Now()
	b.fleet.put(s, crash)
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// flipMembers measures lone changes, in many bundles of the first clusters, and waits until all is ready again.
func (b *bench) flipMembers(ctx context.Context, clusters int) ([]time.Duration, error) {
	f := b.fleet
	took, _, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		return b.flipMember(ctx, slot{i * 7 % clusters, i * 3 % len(f.apps)})
	})
	if err != nil {
		return nil, err
	}
	return took, b.healMembers(ctx, clusters)
}

// healMembers makes everything ready again, and waits until all scopes show it.
func (b *bench) healMembers(ctx context.Context, clusters int) error {
	for s, down := range b.fleet.down {
		if down {
			b.fleet.put(s, false)
		}
	}
	if _, err := b.plane.scopes.await(ctx, "all scopes over clusters to be healthy", b.fleet.right(clusters)); err != nil {
		return err
	}
	return b.plane.scopes.quiet(ctx, quietTime)
}

// prepareFleet makes the fleet, measures what its figures are compared with, and leaves it ready for the controller to start.
func prepareFleet(ctx context.Context, b *bench) (err error) {
	if b.fleet, err = b.newFleetBench(ctx); err != nil {
		return err
	}
	f, servers := b.fleet, b.fleet.members.Servers
	f.fill(1)
	if err := b.enrol(ctx, servers[:1]); err != nil {
		return err
	}
	if err := b.hs.StartController(ctx); err != nil {
		return err
	}
	if _, err := b.plane.scopes.await(ctx, "all scopes to be healthy with one cluster", f.right(1)); err != nil {
		return err
	}
	if f.lone, err = b.flipMembers(ctx, 1); err != nil {
		return err
	}
	if err := b.measureBase(ctx); err != nil {
		return err
	}
	if err := b.hs.StopController(); err != nil {
		return err
	}
	f.fill(len(servers))
	return nil
}

// measureBase lets the other members join, without bundles, then fills all of them and empties them again.
func (b *bench) measureBase(ctx context.Context) (err error) {
	f, servers := b.fleet, b.fleet.members.Servers
	f.empty()
	if err := b.enrol(ctx, servers[1:]); err != nil {
		return err
	}
	if err := b.awaitConnected(ctx); err != nil {
		return err
	}
	if f.before, err = b.collectedHeap(ctx); err != nil {
		return err
	}
	f.fill(len(servers))
	if _, err := b.plane.scopes.await(ctx, "all scopes to be healthy in all clusters", f.right(len(servers))); err != nil {
		return err
	}
	f.empty()
	if _, err := b.plane.scopes.await(ctx, "all scopes to have nothing", f.nothing()); err != nil {
		return err
	}
	f.base, err = b.collectedHeap(ctx)
	return err
}

// awaitConnected waits until the hub sees all clusters and its own.
func (b *bench) awaitConnected(ctx context.Context) error {
	want := float64(len(b.fleet.members.Servers) + 1)
	return poll(ctx, fmt.Sprintf("%v clusters to be connected", want), func(ctx context.Context) (bool, error) {
		text, err := scrape(ctx, http.DefaultClient, b.hs.Metrics)
		return sum(text, "healthscope_cluster_up") == want, err
	})
}

// collectedHeap returns the controller's live heap, in bytes, after garbage has been collected twice: what was interned goes a
// cycle later. The garbage that makes it collect is that of answering for its metrics.
func (b *bench) collectedHeap(ctx context.Context) (live float64, err error) {
	begun := -1.0
	err = poll(ctx, "the controller to collect its garbage", func(ctx context.Context) (bool, error) {
		for {
			text, err := scrape(ctx, http.DefaultClient, b.hs.Metrics)
			if err != nil {
				return false, err
			}
			cycles := sum(text, "go_gc_duration_seconds_count")
			if begun < 0 {
				begun = cycles
			}
			if live = liveHeap(text); cycles >= begun+2 {
				return true, nil
			}
		}
	})
	return live, err
}

// measureFleetStart starts the controller with all members.
func measureFleetStart(ctx context.Context, b *bench) ([]figure, error) {
	f, n := b.fleet, len(b.fleet.members.Servers)
	begin := time.Now()
	seen := b.plane.scopes.expect("all scopes to be healthy in all clusters after the start of the controller", f.right(n))
	if err := b.hs.StartController(ctx); err != nil {
		return nil, err
	}
	at, err := seen(ctx)
	if err != nil {
		return nil, err
	}
	f.judged = true
	if err := b.plane.scopes.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	live, err := b.collectedHeap(ctx)
	return []figure{
		{Name: "resources", Value: float64(f.resources())},
		{Name: "seconds", Value: at.Sub(begin).Seconds(), Target: new(60.0)},
		{Name: "live heap before any bundle MiB", Value: mebibytes(int64(f.before))},
		{Name: "live heap after all bundles went MiB", Value: mebibytes(int64(f.base))},
		{Name: "live heap MiB", Value: mebibytes(int64(live))},
		{Name: "live heap per resource B", Value: (live - f.base) / float64(f.resources()), Target: new(1024.0)},
	}, err
}

// ensureFleet makes sure that the controller has judged everything in all members.
func ensureFleet(ctx context.Context, b *bench) error {
	if b.fleet == nil {
		if err := prepareFleet(ctx, b); err != nil {
			return err
		}
	}
	if !b.fleet.judged {
		_, err := measureFleetStart(ctx, b)
		return err
	}
	return b.healMembers(ctx, len(b.fleet.members.Servers))
}

// measureFleetFlip measures lone changes, beside those with one member.
func measureFleetFlip(ctx context.Context, b *bench) ([]figure, error) {
	took, err := b.flipMembers(ctx, len(b.fleet.members.Servers))
	if err != nil {
		return nil, err
	}
	p95, lone := percentile(took, 95), percentile(b.fleet.lone, 95)
	return []figure{
		{Name: "p50 ms", Value: milliseconds(percentile(took, 50))},
		{Name: "p95 ms", Value: milliseconds(p95)},
		{Name: "one cluster p50 ms", Value: milliseconds(percentile(b.fleet.lone, 50))},
		{Name: "one cluster p95 ms", Value: milliseconds(lone)},
		{Name: "p95 / one cluster", Value: float64(p95) / float64(lone), Target: new(3.0)},
	}, nil
}

func measureFleetIdle(ctx context.Context, b *bench) ([]figure, error) {
	if err := pause(ctx, b.options.scaledTime(30*time.Second, 3*time.Second)); err != nil {
		return nil, err
	}
	_, err := b.plane.scopes.await(ctx, "all scopes to be healthy still", b.fleet.right(len(b.fleet.members.Servers)))
	return nil, err
}

func countFleetIdle(b *bench, used result) []figure {
	return []figure{
		{Name: "controller CPU % of a core", Value: 100 * used.processes["controller"].cpu.Seconds() / used.length.Seconds(), Target: new(5.0)},
		{Name: "controller RSS MiB", Value: mebibytes(used.processes["controller"].rss)},
		{Name: "writes of scopes", Value: float64(used.requests.writes(scopeStatus)), Target: new(0.0)},
	}
}
