package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file has the rows about bundles: fill, flip, burst and big.

func measureFill(ctx context.Context, b *bench) ([]figure, error) {
	var apps []app
	for i := range b.options.scaled(500, 10) {
		apps = append(apps, app{namespace: appNamespace(i), name: fmt.Sprintf("%d-web", 1000+i), pods: 10, configMaps: 5})
	}
	if err := b.createApps(ctx, apps); err != nil {
		return nil, err
	}
	if err := b.createBundles(ctx, apps); err != nil {
		return nil, err
	}
	b.apps = apps
	b.logf("created %d applications", len(apps))
	var took time.Duration
	used, err := b.used(ctx, func() (err error) {
		took, err = startUntil(ctx, b.hs.StartMonitor, b.bundles.expect("all bundles to be right after the start of the monitor", allRight(apps)))
		if err != nil {
			return err
		}
		return b.bundles.quiet(ctx, quietTime)
	})
	return []figure{
		{name: "s", value: took.Seconds(), peer: "427", target: new(20.0)},
		{name: "writes", value: used.bundles, floor: float64(len(apps)), peer: "8500", target: new(1000.0)},
		{name: "peak MiB", value: b.peak("monitor"), peer: "1035", target: new(200.0)},
	}, err
}

// startUntil starts a program, and returns the time from the start until the event for which seen waits.
func startUntil(ctx context.Context, start func(context.Context) error, seen func(context.Context) (time.Time, error)) (time.Duration, error) {
	begin := time.Now()
	if err := start(ctx); err != nil {
		return 0, err
	}
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// needBundles prepares applications whose bundles the monitor has filled.
func (b *bench) needBundles(ctx context.Context) error {
	if len(b.apps) == 0 {
		if _, err := measureFill(ctx, b); err != nil {
			return err
		}
	}
	return b.bundles.quiet(ctx, quietTime)
}

// podOf is a pod of an application.
type podOf struct {
	app app
	pod int
}

func (t podOf) name() types.NamespacedName {
	return types.NamespacedName{Namespace: t.app.namespace, Name: t.app.podName(t.pod)}
}

// flip makes a pod crash, or lets it recover, and returns how long it took until its bundle showed it.
func (b *bench) flip(ctx context.Context, t podOf) (time.Duration, error) {
	crash := !b.crashed[t]
	seen := b.bundles.expect(fmt.Sprintf("the bundle of pod %q", t.name()), checks[bundleStatus]{t.app.key(): t.app.shows(t.pod, crash)})
	begin := time.Now()
	if err := b.crash(ctx, t.app, t.pod, crash); err != nil {
		return 0, err
	}
	b.crashed[t] = crash
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// heal lets all pods recover, and waits for all bundles to be right.
func (b *bench) heal(ctx context.Context) error {
	down := those(b.crashed)
	clear(b.crashed)
	if err := each(ctx, len(down), func(ctx context.Context, i int) error { return b.crash(ctx, down[i].app, down[i].pod, false) }); err != nil {
		return err
	}
	_, err := b.bundles.await(ctx, "all bundles to be right again", allRight(b.apps))
	return err
}

// bundleHops returns the hops from a pod to its bundle.
func (b *bench) bundleHops(ctx context.Context) ([]hop, error) {
	if b.bundleWay != nil {
		return b.bundleWay, nil
	}
	f, err := b.needFloor(ctx)
	if err != nil {
		return nil, err
	}
	pod, err := f.pod(ctx, "floor")
	if err != nil {
		return nil, err
	}
	bundle, err := f.bundle(ctx, "floor")
	b.bundleWay = []hop{pod, bundle}
	return b.bundleWay, err
}

// flips measures single changes of pods in many applications, in turn with the floor. It heals at the end.
func (b *bench) flips(ctx context.Context) (figure, error) {
	hops, err := b.bundleHops(ctx)
	if err != nil {
		return figure{}, err
	}
	took, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		return b.flip(ctx, podOf{b.apps[i*7%len(b.apps)], 0}) // Spread over many applications.
	}, hops...)
	if err != nil {
		return figure{}, err
	}
	return latency("", took, 3, floors...), b.heal(ctx)
}

func measureFlip(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needBundles(ctx); err != nil {
		return nil, err
	}
	f, err := b.flips(ctx)
	f.peer = "70"
	return []figure{f}, err
}

// burst makes the first pods of each application crash at once. It returns how long it took until all bundles showed it, and
// what was used meanwhile.
func (b *bench) burst(ctx context.Context, apps []app, podsOfEach int) (time.Duration, usage, error) {
	var all []podOf
	want := checks[bundleStatus]{}
	for _, a := range apps {
		var crashed []int
		for i := range podsOfEach {
			crashed = append(crashed, i)
			all = append(all, podOf{a, i})
			b.crashed[podOf{a, i}] = true
		}
		want[a.key()] = a.right(crashed, nil)
	}
	var took time.Duration
	used, err := b.used(ctx, func() error {
		seen := b.bundles.expect("the bundles to show all pods that have changed at once", want)
		begin := time.Now()
		if err := each(ctx, len(all), func(ctx context.Context, i int) error { return b.crash(ctx, all[i].app, all[i].pod, true) }); err != nil {
			return err
		}
		at, err := seen(ctx)
		took = at.Sub(begin)
		if err != nil {
			return err
		}
		return b.bundles.quiet(ctx, quietTime)
	})
	return took, used, err
}

func measureBurst(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needBundles(ctx); err != nil {
		return nil, err
	}
	f, err := b.needFloor(ctx)
	if err != nil {
		return nil, err
	}
	apps := b.apps[:b.options.scaled(100, 5)]
	floor, err := f.burst(ctx, len(apps))
	if err != nil {
		return nil, err
	}
	took, used, err := b.burst(ctx, apps, 2)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{name: "100 apps s", value: took.Seconds(), floor: floor.Seconds(), peer: "9", target: new(2.0)},
		{name: "100 apps writes", value: used.bundles, floor: float64(len(apps)), peer: "200", target: new(200.0)},
	}
	if err := b.heal(ctx); err != nil {
		return nil, err
	}
	one := bigApp("200-pods", b.options.scaled(200, 20))
	if err := b.addBig(ctx, one); err != nil {
		return nil, err
	}
	if took, used, err = b.burst(ctx, []app{one}, one.pods); err != nil {
		return nil, err
	}
	figures = append(figures,
		figure{name: "one app s", value: took.Seconds(), peer: "151-168", target: new(2.0)},
		figure{name: "one app writes", value: used.bundles, floor: 1, peer: "369", target: new(10.0)})
	clear(b.crashed) // All crashed pods belong to the application that is deleted.
	return figures, b.deleteApp(ctx, one)
}

// bigApp returns an application with many pods that have no owner, so that each of them counts in the summary of the bundle.
func bigApp(name string, pods int) app {
	return app{namespace: appNamespace(0), name: name, pods: pods, configMaps: 5, bare: true}
}

// addBig adds an application with many pods, and waits until its bundle is right.
func (b *bench) addBig(ctx context.Context, a app) error {
	if err := b.createBundles(ctx, []app{a}); err != nil {
		return err
	}
	rest := a
	rest.pods = 0
	if err := b.createApp(ctx, rest); err != nil {
		return err
	}
	if err := each(ctx, a.pods, func(ctx context.Context, i int) error { return b.createPod(ctx, a, i) }); err != nil {
		return err
	}
	return b.awaitBig(ctx, a, nil)
}

func (b *bench) awaitBig(ctx context.Context, a app, crashed []int) error {
	_, err := b.bundles.await(ctx, fmt.Sprintf("the bundle of %d pods to be right", a.pods), checks[bundleStatus]{a.key(): a.right(crashed, nil)})
	return err
}

func measureBig(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needBundles(ctx); err != nil {
		return nil, err
	}
	hops, err := b.bundleHops(ctx)
	if err != nil {
		return nil, err
	}
	a := bigApp("2000-pods", b.options.scaled(2000, 50))
	if err := b.addBig(ctx, a); err != nil {
		return nil, err
	}
	var crashed []int
	for i := 3; i < a.pods; i += 100 {
		crashed = append(crashed, i)
	}
	if err := each(ctx, len(crashed), func(ctx context.Context, i int) error { return b.crash(ctx, a, crashed[i], true) }); err != nil {
		return nil, err
	}
	if err := b.awaitBig(ctx, a, crashed); err != nil {
		return nil, err
	}
	if err := b.bundles.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	_, quiet, err := b.alternate(ctx, func(context.Context, int) (time.Duration, error) { return 0, nil }, hops...)
	if err != nil {
		return nil, err
	}
	var f figure
	err = meanwhile(ctx, func(ctx context.Context) error { return b.churnPod(ctx, a) }, func() (err error) {
		f, err = b.flips(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := b.awaitBig(ctx, a, crashed); err != nil {
		return nil, err
	}
	f.peer = "16600, and none of 2,000 pods"
	beside := figure{name: "beside the floor when nothing else changes p95 ms", value: f.value, floor: p95(quiet[0]) + p95(quiet[1])}
	return []figure{f, beside}, b.deleteApp(ctx, a)
}

// churnPod makes the first pod of an application crash and recover in turn, with pauses of 50 ms, until ctx is done. It leaves
// the pod ready.
func (b *bench) churnPod(ctx context.Context, a app) error {
	for crash := true; ; crash = !crash {
		if err := b.crash(context.WithoutCancel(ctx), a, 0, crash); err != nil {
			return err
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return b.crash(context.WithoutCancel(ctx), a, 0, false)
		}
	}
}

// meanwhile runs background until do has returned.
func meanwhile(ctx context.Context, background func(context.Context) error, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- background(ctx) }()
	err := do()
	stop()
	if failed := <-ended; err == nil {
		err = failed
	}
	return err
}
