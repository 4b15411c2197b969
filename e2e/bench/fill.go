package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	bundleStatus = "resourcebundlestates/status"
	scopeStatus  = "healthscopes/status"
	// quietTime is how long nothing must change before something counts as finished: longer than any pause between two writes.
	quietTime = time.Second
	// restartQuiet is the same after a restart of the monitor, which has timers of ten seconds and more: what it writes then counts.
	restartQuiet = 15 * time.Second
)

// makeApps makes the applications of the run.
func (b *bench) makeApps(ctx context.Context) error {
	for i := range b.options.scaled(500, 10) {
		b.apps = append(b.apps, app{namespace: appNamespace(i), name: fmt.Sprintf("%d-web", 1000+i), pods: 10, configMaps: 5})
	}
	begin := time.Now()
	if err := b.createApps(ctx, b.apps); err != nil {
		return err
	}
	if err := b.createBundles(ctx, b.apps); err != nil {
		return err
	}
	b.logf("made %d applications in %s", len(b.apps), time.Since(begin).Round(time.Millisecond))
	return nil
}

func prepareFill(ctx context.Context, b *bench) error { return b.makeApps(ctx) }

func measureFill(ctx context.Context, b *bench) ([]figure, error) {
	begin := time.Now()
	seen := b.bundles.expect("all bundles to be right after the start of the monitor", allRight(b.apps))
	if err := b.hs.StartMonitor(ctx); err != nil {
		return nil, err
	}
	at, err := seen(ctx)
	if err != nil {
		return nil, err
	}
	b.filled = true
	return []figure{{Name: "seconds", Value: at.Sub(begin).Seconds(), Peer: "427", Target: new(20.0)}}, b.bundles.quiet(ctx, quietTime)
}

func countFill(_ *bench, used result) []figure {
	return []figure{
		{Name: "writes", Value: float64(used.requests.writes(bundleStatus)), Peer: "8500", Target: new(1000.0)},
		{Name: "peak MiB", Value: mebibytes(used.processes["monitor"].peak), Peer: "1035", Target: new(200.0)},
	}
}

// ensureBundles makes sure that applications are there and that the monitor has filled their bundles.
func ensureBundles(ctx context.Context, b *bench) error {
	if len(b.apps) == 0 {
		if err := b.makeApps(ctx); err != nil {
			return err
		}
	}
	if !b.filled {
		_, err := measureFill(ctx, b)
		return err
	}
	return b.bundles.quiet(ctx, quietTime)
}

func measureRestart(ctx context.Context, b *bench) ([]figure, error) {
	before := b.bundles.snapshot()
	if err := b.hs.StopMonitor(); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := b.hs.StartMonitor(ctx); err != nil {
		return nil, err
	}
	if err := b.awaitLooked(ctx, len(before)); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	if err := b.bundles.quiet(ctx, b.options.scaledTime(restartQuiet, quietTime)); err != nil {
		return nil, err
	}
	if _, err := b.bundles.await(ctx, "all bundles to be right after the restart", allRight(b.apps)); err != nil {
		return nil, err
	}
	written := 0
	for name, after := range b.bundles.snapshot() {
		if old, ok := before[name]; !ok || old.version != after.version {
			written++
		}
	}
	return []figure{
		{Name: "seconds", Value: took.Seconds()},
		{Name: "bundles with a new version", Value: float64(written), Target: new(0.0)},
	}, nil
}

// awaitLooked waits until the monitor has looked at so many bundles since its start. Nothing announces that it has nothing
// to do, so it has to be asked.
func (b *bench) awaitLooked(ctx context.Context, bundles int) error {
	var looked, queued float64
	err := poll(ctx, fmt.Sprintf("the monitor to look at %d bundles", bundles), func(ctx context.Context) (bool, error) {
		text, err := scrape(ctx, http.DefaultClient, b.hs.MonitorMetrics)
		looked = sum(text, "controller_runtime_reconcile_total", `controller="monitor"`)
		queued = sum(text, "workqueue_depth", `controller="monitor"`)
		return looked >= float64(bundles) && queued == 0, err
	})
	if err != nil {
		return fmt.Errorf("it has looked %v times, and %v are queued: %w", looked, queued, err)
	}
	return nil
}

func countRestart(_ *bench, used result) []figure {
	return []figure{{Name: "writes", Value: float64(used.requests.writes(bundleStatus)), Peer: "8500", Target: new(0.0)}}
}
