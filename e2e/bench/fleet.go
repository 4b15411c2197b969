package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/e2e/installation"
)

// This file has the rows about member clusters: fleet and flood.

const (
	// fleetNamespace is the namespace of the applications in the members, and of their scopes in the hub.
	fleetNamespace = "bench-fleet"
	// renewInterval is how often the monitor of a member renews its Lease.
	renewInterval = 3 * time.Second
	// tokenLifetime is how long the hub's token in a member is valid: it is not renewed in a run.
	tokenLifetime = 7 * 24 * time.Hour
	// fleetRate and floodRate are changes per second: of all members together, and of the member that floods.
	fleetRate, floodRate = 400, 1000
)

// fleet is the member clusters of a hub. Each cluster has the same applications. Each scope of the hub covers one application in
// all clusters.
type fleet struct {
	members []*member
	apps    []app
	scopes  []scope
	// ready and crashed are the bundles of the applications, in the same order: with everything ready, and with a pod that
	// crashes.
	ready, crashed []sharedBundle
	// down is true for the bundles in which a pod crashes at present.
	down map[slot]bool
	// lone is how long single changes took when the hub had one member.
	lone []time.Duration
}

// slot identifies a bundle by the numbers of its cluster and its application.
type slot struct{ cluster, app int }

func (f *fleet) resources() int { return len(f.members) * len(f.apps) * f.apps[0].resources() }

// newFleet starts the members without applications, renews their Leases until the end, and creates the scopes.
func (b *bench) newFleet(ctx context.Context) error {
	f := &fleet{down: map[slot]bool{}}
	for i := range b.options.scaled(50, 5) {
		a := app{namespace: fleetNamespace, name: fmt.Sprintf("%d-web", 1000+i), pods: 10, configMaps: 8}
		f.apps = append(f.apps, a)
		f.scopes = append(f.scopes, scope{namespace: fleetNamespace, name: a.name, apps: []app{a}})
		for crash, into := range map[bool]*[]sharedBundle{false: &f.ready, true: &f.crashed} {
			o := a.bundle()
			var err error
			if o.Status, err = a.reported(crash); err != nil {
				return err
			}
			shared, err := shareBundle(o)
			if err != nil {
				return err
			}
			*into = append(*into, shared)
		}
	}
	for i := range b.options.scaled(100, 3) {
		m, err := startMember(fmt.Sprintf("bench+edge%02d", i), 20000+i)
		if err != nil {
			return err
		}
		b.closers = append(b.closers, func() error { m.stop(); return nil })
		f.members = append(f.members, m)
	}
	lease := types.NamespacedName{Namespace: installation.Namespace, Name: "healthscope-monitor"}
	b.running.Go(func() {
		for i := 0; b.watching.Err() == nil; i++ {
			f.members[i%len(f.members)].renew(lease, time.Now())
			if i >= len(f.members) {
				_ = pause(b.watching, renewInterval/time.Duration(len(f.members))) // The loop condition checks for the end.
			}
		}
	})
	b.fleet = f
	return b.createScopes(ctx, f.scopes)
}

// enrol makes clusters members of the hub, as the command clusters add does.
func (b *bench) enrol(ctx context.Context, members []*member) error {
	return each(ctx, len(members), func(ctx context.Context, i int) error {
		e := enrol.Enrolment{Name: members[i].name, Server: members[i].server.URL, Authority: members[i].authority(), SecretNamespace: corev1alpha2.DefaultClustersNamespace}
		secret, err := e.Secret(enrol.Token{Value: memberToken, Expires: time.Now().Add(tokenLifetime), Lifetime: tokenLifetime})
		if err != nil {
			return err
		}
		return b.create(ctx, secret)
	})
}

// put makes a member report a bundle: with everything ready, or with a pod that crashes.
func (f *fleet) put(s slot, crash bool) {
	shared := f.ready[s.app]
	if crash {
		shared = f.crashed[s.app]
	}
	f.members[s.cluster].bundles.put(f.apps[s.app].key(), shared.labels, shared.rest)
}

// fill puts all applications into the first clusters, ready.
func (f *fleet) fill(clusters int) {
	for i := range clusters {
		for n := range f.apps {
			f.put(slot{i, n}, false)
		}
	}
}

// empty removes all applications from the first clusters.
func (f *fleet) empty(clusters int) {
	for i := range clusters {
		for _, a := range f.apps {
			f.members[i].bundles.remove(a.key())
		}
	}
}

// right returns checks that every scope sees that number of clusters, with all resources ready.
func (f *fleet) right(clusters int) checks[scopeStatus] {
	all := checks[scopeStatus]{}
	reachable := fmt.Sprintf("%d/%d", clusters, clusters)
	for i, s := range f.scopes {
		ready := counts(clusters*f.apps[i].counting(), clusters*f.apps[i].counting())
		all[s.key()] = func(s scopeStatus) string {
			if s.ClustersReachable != reachable {
				return fmt.Sprintf("it sees %q clusters, not %q", s.ClustersReachable, reachable)
			}
			return ready(s)
		}
	}
	return all
}

// nothing returns checks that no scope has resources left.
func (f *fleet) nothing() checks[scopeStatus] {
	all := checks[scopeStatus]{}
	for _, s := range f.scopes {
		all[s.key()] = func(s scopeStatus) string {
			if s.Summary.Ready > 0 || s.Summary.Total > 1 { // The missing bundle counts as one.
				return fmt.Sprintf("it has %d/%d resources", s.Summary.Ready, s.Summary.Total)
			}
			return ""
		}
	}
	return all
}

// flipMember makes a bundle report a crash or a recovery, and returns how long it took until its scope showed it.
func (b *bench) flipMember(ctx context.Context, s slot, crash bool) (time.Duration, error) {
	f := b.fleet
	cluster, want := f.members[s.cluster].name, int32(f.apps[s.app].counting())
	if crash {
		want-- // The Deployment is not ready.
	}
	seen := b.scopeBoard.expect("the scope of a member's bundle", checks[scopeStatus]{f.scopes[s.app].key(): func(status scopeStatus) string {
		for _, a := range status.Apps {
			for i := range a.Clusters {
				if c := &a.Clusters[i]; c.Name == cluster && c.Ready == want {
					return ""
				}
			}
		}
		return fmt.Sprintf("it does not show %d as ready in cluster %q", want, cluster)
	}})
	begin := time.Now()
	f.put(s, crash)
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// flipMembers measures single changes in many bundles of the clusters from first up to, but not including, end. It heals at the
// end.
func (b *bench) flipMembers(ctx context.Context, first, end int) ([]time.Duration, error) {
	f := b.fleet
	took, _, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		s := slot{first + i*7%(end-first), i * 3 % len(f.apps)}
		f.down[s] = !f.down[s]
		return b.flipMember(ctx, s, f.down[s])
	})
	if err != nil {
		return nil, err
	}
	return took, b.healMembers(ctx, end)
}

// healMembers makes everything ready again, and waits until all scopes show it.
func (b *bench) healMembers(ctx context.Context, clusters int) error {
	for _, s := range those(b.fleet.down) {
		b.fleet.put(s, false)
	}
	clear(b.fleet.down)
	if _, err := b.scopeBoard.await(ctx, "all scopes over clusters to be healthy", b.fleet.right(clusters)); err != nil {
		return err
	}
	return b.scopeBoard.quiet(ctx, quietTime)
}

// collectedHeap returns the controller's live heap, in MiB, after two garbage collections: interned values are freed one
// collection later. The requests for the metrics allocate the garbage that triggers the collections.
func (b *bench) collectedHeap(ctx context.Context) (live float64, err error) {
	begun := -1.0
	err = poll(ctx, "the controller to collect its garbage", func(ctx context.Context) (bool, error) {
		for range 20 {
			m, err := scrape(ctx, http.DefaultClient, b.hs.Metrics)
			if err != nil {
				return false, err
			}
			cycles := m.sum("go_gc_duration_seconds")
			if begun < 0 {
				begun = cycles
			}
			if live = m.liveHeap(); cycles >= begun+2 {
				return true, nil
			}
		}
		return false, nil
	})
	return live, err
}

// prepareFleet creates the fleet, and returns the controller's live heap after bundles were added and removed: connections keep
// buffers of the size of the data that they have transferred. It stops the controller, and leaves the fleet full for the next
// start.
func (b *bench) prepareFleet(ctx context.Context) (empty float64, err error) {
	if err := b.newFleet(ctx); err != nil {
		return 0, err
	}
	f := b.fleet
	n := len(f.members)
	f.fill(1)
	if err := b.enrol(ctx, f.members[:1]); err != nil {
		return 0, err
	}
	if _, err := startUntil(ctx, b.hs.StartController, b.scopeBoard.expect("all scopes to be healthy with one cluster", f.right(1))); err != nil {
		return 0, err
	}
	if f.lone, err = b.flipMembers(ctx, 0, 1); err != nil {
		return 0, err
	}
	f.fill(n)
	if err := b.enrol(ctx, f.members[1:]); err != nil {
		return 0, err
	}
	if _, err := b.scopeBoard.await(ctx, "all scopes to be healthy in all clusters", f.right(n)); err != nil {
		return 0, err
	}
	f.empty(n)
	if _, err := b.scopeBoard.await(ctx, "all scopes to have nothing", f.nothing()); err != nil {
		return 0, err
	}
	if empty, err = b.collectedHeap(ctx); err != nil {
		return 0, err
	}
	if err := b.hs.StopController(); err != nil {
		return 0, err
	}
	f.fill(n)
	return empty, nil
}

func measureFleet(ctx context.Context, b *bench) ([]figure, error) {
	empty, err := b.prepareFleet(ctx)
	if err != nil {
		return nil, err
	}
	f, n := b.fleet, len(b.fleet.members)
	start, err := startUntil(ctx, b.hs.StartController, b.scopeBoard.expect("all scopes to be healthy in all clusters after the start of the controller", f.right(n)))
	if err != nil {
		return nil, err
	}
	if err := b.scopeBoard.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	live, err := b.collectedHeap(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	idle, err := b.used(ctx, func() error { return pause(ctx, b.options.scaledTime(30*time.Second, 3*time.Second)) })
	if err != nil {
		return nil, err
	}
	cpu := 100 * idle.cpu["controller"] / time.Since(begin).Seconds()
	took, err := b.flipMembers(ctx, 0, n)
	if err != nil {
		return nil, err
	}
	many, err := atRate(ctx, fleetRate, b.options.scaledTime(4*time.Second, time.Second), f.down, func(i int) slot { return slot{i % n, i / n % len(f.apps)} }, b.flipMember)
	if err != nil {
		return nil, err
	}
	rate := latency(fmt.Sprintf("at %d per s ", fleetRate), many, 0)
	rate.target = new(1000.0)
	return []figure{
		{name: "start s", value: start.Seconds(), target: new(60.0)},
		{name: "live heap/resource B", value: (live - empty) * mebibyte / float64(f.resources()), target: new(1024.0)},
		{name: "idle CPU %", value: cpu, target: new(5.0)},
		{name: "idle writes", value: idle.scopes, target: new(0.0)},
		latency("(floor: one cluster) ", took, 3, f.lone),
		rate,
	}, b.healMembers(ctx, n)
}

// measureFlood measures single changes in the other members while the first member makes floodRate changes per second. The floor
// is the same without the flood.
func measureFlood(ctx context.Context, b *bench) ([]figure, error) {
	if b.fleet == nil {
		if _, err := measureFleet(ctx, b); err != nil {
			return nil, err
		}
	}
	f, n := b.fleet, len(b.fleet.members)
	undisturbed, err := b.flipMembers(ctx, 1, n)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	changes := 0
	begin := time.Now()
	err = meanwhile(ctx, func(ctx context.Context) error {
		for ; ctx.Err() == nil; changes++ {
			f.put(slot{0, changes % len(f.apps)}, changes/len(f.apps)%2 == 0)
			_ = pause(ctx, time.Until(begin.Add(time.Duration(changes)*time.Second/floodRate))) // The loop condition checks for the end.
		}
		return nil
	}, func() (err error) {
		took, _, err = b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
			s := slot{1 + i*7%(n-1), i * 3 % len(f.apps)}
			f.down[s] = !f.down[s]
			return b.flipMember(ctx, s, f.down[s])
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	offered := float64(changes) / time.Since(begin).Seconds()
	f.fill(1)
	return []figure{latency("(floor: without flood) ", took, 0, undisturbed), {name: "flood changes/s", value: offered}}, b.healMembers(ctx, n)
}
