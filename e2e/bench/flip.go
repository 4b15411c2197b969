package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// flip makes a pod crash, or lets it recover, and returns how long it took until its bundle showed it.
func (b *bench) flip(ctx context.Context, a app, pod int) (time.Duration, error) {
	name := target{a, pod}.name()
	crash := !b.crashed[name]
	seen := b.bundles.expect(fmt.Sprintf("the bundle of pod %q", name), map[types.NamespacedName]check[*bundleView]{a.key(): a.shows(pod, crash)})
	begin := time.Now()
	if err := b.crash(ctx, a, pod, crash); err != nil {
		return 0, err
	}
	b.crashed[name] = crash
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// heal lets the pods recover that crash, and waits for all bundles to be right.
func (b *bench) heal(ctx context.Context) error {
	var targets []target
	for _, a := range b.apps {
		for i := range a.pods {
			if t := (target{a, i}); b.crashed[t.name()] {
				targets = append(targets, t)
			}
		}
	}
	clear(b.crashed)
	err := each(ctx, len(targets), func(ctx context.Context, i int) error { return b.crash(ctx, targets[i].app, targets[i].pod, false) })
	if err != nil {
		return err
	}
	_, err = b.bundles.await(ctx, "all bundles to be right again", allRight(b.apps))
	return err
}

// flips measures lone changes of pods of the applications, one after the other and in many applications, and the floor in turn.
func (b *bench) flips(ctx context.Context) ([]time.Duration, [][]time.Duration, error) {
	took, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		return b.flip(ctx, b.apps[i*7%len(b.apps)], 0)
	}, b.floor.pod, b.floor.bundle)
	if err != nil {
		return nil, nil, err
	}
	return took, floors, b.heal(ctx)
}

func measureFlip(ctx context.Context, b *bench) ([]figure, error) {
	took, floors, err := b.flips(ctx)
	if err != nil {
		return nil, err
	}
	return latencies(took, floors, "34", "70", 3), nil
}

// target is a pod of an application.
type target struct {
	app app
	pod int
}

func (t target) name() types.NamespacedName {
	return types.NamespacedName{Namespace: t.app.namespace, Name: t.app.podName(t.pod)}
}

// burst makes pods crash at once and returns how long it took until all bundles showed it.
func (b *bench) burst(ctx context.Context, targets []target) (time.Duration, error) {
	failed := map[types.NamespacedName][]int{}
	apps := map[types.NamespacedName]app{}
	for _, t := range targets {
		apps[t.app.key()] = t.app
		failed[t.app.key()] = append(failed[t.app.key()], t.pod)
	}
	checks := map[types.NamespacedName]check[*bundleView]{}
	for key, a := range apps {
		checks[key] = a.complete(expectation{failed: failed[key]})
	}
	seen := b.bundles.expect("the bundles to show all pods that have changed at once", checks)
	begin := time.Now()
	err := each(ctx, len(targets), func(ctx context.Context, i int) error { return b.crash(ctx, targets[i].app, targets[i].pod, true) })
	if err != nil {
		return 0, err
	}
	at, err := seen(ctx)
	if err != nil {
		return 0, err
	}
	return at.Sub(begin), b.bundles.quiet(ctx, quietTime)
}

// prepareBurstApps also measures the floor, as near to the burst as can be.
func prepareBurstApps(ctx context.Context, b *bench) (err error) {
	if err := ensureBundles(ctx, b); err != nil {
		return err
	}
	b.burstFloor, err = b.floor.burst(ctx, b.burstApps())
	return err
}

// burstApps is how many applications change in a burst.
func (b *bench) burstApps() int { return b.options.scaled(100, 5) }

func measureBurstApps(ctx context.Context, b *bench) ([]figure, error) {
	var targets []target
	n := b.burstApps()
	for i := range 2 * n {
		t := target{app: b.apps[i%n], pod: i / n}
		b.crashed[t.name()] = true
		targets = append(targets, t)
	}
	took, err := b.burst(ctx, targets)
	return []figure{
		{Name: "seconds", Value: took.Seconds(), Peer: "9", Target: new(2.0)},
		{Name: "floor seconds", Value: b.burstFloor.Seconds()},
		{Name: "seconds / floor", Value: float64(took) / float64(b.burstFloor)},
	}, err
}

// countBurst counts the writes of a burst.
func countBurst(target float64, peer string) func(*bench, result) []figure {
	return func(_ *bench, used result) []figure {
		return []figure{
			{Name: "writes", Value: float64(used.requests.writes(bundleStatus)), Peer: peer, Target: new(target)},
			{Name: "MiB written", Value: used.bundleBytes / (1 << 20)},
		}
	}
}

func prepareBurstOne(ctx context.Context, b *bench) error {
	if err := ensureBundles(ctx, b); err != nil {
		return err
	}
	if err := b.heal(ctx); err != nil {
		return err
	}
	_, err := b.addBig(ctx, b.bigApp("200-pods", b.options.scaled(200, 20)))
	return err
}

func (b *bench) bigApp(name string, pods int) app {
	return app{namespace: appNamespace(0), name: name, pods: pods, configMaps: 5, bare: true}
}

func measureBurstOne(ctx context.Context, b *bench) ([]figure, error) {
	a := b.bigApp("200-pods", b.options.scaled(200, 20))
	var targets []target
	for i := range a.pods {
		targets = append(targets, target{a, i})
	}
	b.leftovers = append(b.leftovers, a)
	took, err := b.burst(ctx, targets)
	return []figure{{Name: "seconds", Value: took.Seconds(), Peer: "151-168", Target: new(2.0)}}, err
}
