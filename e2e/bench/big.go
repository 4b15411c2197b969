package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// churnInterval is the time between two changes in a big app while other apps are measured.
const churnInterval = 50 * time.Millisecond

// addBig adds an application with many pods, and returns how long after the last of them its bundle was right.
func (b *bench) addBig(ctx context.Context, a app) (time.Duration, error) {
	if err := b.createBundles(ctx, []app{a}); err != nil {
		return 0, err
	}
	rest := a
	rest.pods = 0
	if err := b.createApp(ctx, rest); err != nil {
		return 0, err
	}
	err := each(ctx, a.pods, func(ctx context.Context, i int) error { return b.createPod(ctx, a, i) })
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	at, err := b.bundles.await(ctx, fmt.Sprintf("the bundle of %d pods to be right", a.pods), map[types.NamespacedName]check[*bundleView]{a.key(): a.right(expectation{})})
	return at.Sub(begin), err
}

func measureBig(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.heal(ctx); err != nil {
		return nil, err
	}
	var figures []figure
	for _, size := range []struct {
		name string
		pods int
	}{{"2000", b.options.scaled(2000, 50)}, {"5000", b.options.scaled(5000, 100)}} {
		f, err := b.measureOneBig(ctx, b.bigApp(size.name+"-pods", size.pods))
		if err != nil {
			return nil, err
		}
		for _, one := range f {
			one.Name = size.name + " pods: " + one.Name
			figures = append(figures, one)
		}
	}
	return figures, nil
}

// measureOneBig makes a big app, checks its bundle, and measures other apps while its pods change.
func (b *bench) measureOneBig(ctx context.Context, a app) ([]figure, error) {
	lag, err := b.addBig(ctx, a)
	if err != nil {
		return nil, err
	}
	figures := []figure{{Name: "seconds from the last pod until right", Value: lag.Seconds(), Peer: "never above 295 pods"}}
	troubled := expectation{}
	for i := range a.pods {
		switch i % 100 {
		case 3:
			troubled.failed = append(troubled.failed, i)
		case 7:
			troubled.pending = append(troubled.pending, i)
		}
	}
	if err := b.trouble(ctx, a, troubled); err != nil {
		return nil, err
	}
	latest := b.bundles.snapshot()[a.key()]
	figures = append(figures,
		figure{Name: "resources not named", Value: float64(a.resources() - len(latest.status.Resources)), Target: unnamed(a)},
		figure{Name: "truncated", Value: map[bool]float64{true: 1}[latest.status.Truncated]})
	alone, err := b.floorAlone(ctx, b.floor.pod, b.floor.bundle)
	if err != nil {
		return nil, err
	}
	took, floors, err := b.flipsDuringChurn(ctx, a, troubled)
	if err != nil {
		return nil, err
	}
	figures = append(figures, latencies(took, floors, "16600", "does not finish", 3)...)
	// What the big application costs the API server raises the floor too, so that the other ratio does not show it.
	figures = append(figures, figure{Name: "p95 / floor when quiet", Value: float64(percentile(took, 95)) / float64(floorOf(alone))})
	b.leftovers = append(b.leftovers, a)
	return figures, nil
}

// unnamed is the most resources that may not be named in an app's bundle: none of 2,000; more have no target.
func unnamed(a app) *float64 {
	if a.pods > 2000 {
		return nil
	}
	return new(0.0)
}

// trouble makes pods crash, or not ready, and waits for the bundle.
func (b *bench) trouble(ctx context.Context, a app, e expectation) error {
	seen := b.bundles.expect(fmt.Sprintf("the bundle of %d pods, some of them not ready, to be right", a.pods), map[types.NamespacedName]check[*bundleView]{a.key(): a.right(e)})
	err := each(ctx, len(e.failed), func(ctx context.Context, i int) error { return b.crash(ctx, a, e.failed[i], true) })
	if err != nil {
		return err
	}
	err = each(ctx, len(e.pending), func(ctx context.Context, i int) error { return b.unready(ctx, a, e.pending[i]) })
	if err != nil {
		return err
	}
	_, err = seen(ctx)
	return err
}

// unready makes a pod one that runs and is not ready.
func (b *bench) unready(ctx context.Context, a app, i int) error {
	pod := a.pod(i)
	status := podStatus(pod, false)
	status.ContainerStatuses[0].Ready = false
	patch, err := statusPatch(status)
	if err != nil {
		return err
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	return b.patchStatus(ctx, target, patch)
}

// flipsDuringChurn measures other apps while pods of a big one change, twenty in a second.
func (b *bench) flipsDuringChurn(ctx context.Context, a app, e expectation) (took []time.Duration, floors [][]time.Duration, err error) {
	churning, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var churned error
	wg.Go(func() { churned = b.churnPod(churning, a) })
	took, floors, err = b.flips(ctx)
	stop()
	wg.Wait()
	if err == nil {
		err = churned
	}
	if err == nil {
		err = b.trouble(ctx, a, e)
	}
	return took, floors, err
}

// churnPod lets one pod of an app crash and recover in turn, until ctx is done, and leaves it ready.
func (b *bench) churnPod(ctx context.Context, a app) error {
	for crash := true; ; crash = !crash {
		if err := b.crash(context.WithoutCancel(ctx), a, 0, crash); err != nil {
			return err
		}
		if crash {
			if err := pause(context.WithoutCancel(ctx), churnInterval); err != nil {
				return err
			}
			continue
		}
		if pause(ctx, churnInterval) != nil {
			return nil //nolint:nilerr // Told to end.
		}
	}
}
