package main

import (
	"context"
	"time"
)

func prepareIdle(ctx context.Context, b *bench) error {
	if err := ensureBundles(ctx, b); err != nil {
		return err
	}
	if err := ensureScopes(ctx, b); err != nil {
		return err
	}
	if err := b.heal(ctx); err != nil {
		return err
	}
	return b.bundles.quiet(ctx, quietTime)
}

func measureIdle(ctx context.Context, b *bench) ([]figure, error) {
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, b.options.scaledTime(time.Minute, 3*time.Second)); err != nil {
		return nil, err
	}
	if _, err := b.bundles.await(ctx, "all bundles to be right still", allRight(b.apps)); err != nil {
		return nil, err
	}
	if _, err := b.plane.scopes.await(ctx, "all scopes to be healthy still", allHealthy(b.scopes)); err != nil {
		return nil, err
	}
	asked, err := b.hs.Requests(ctx, last)
	return []figure{{Name: "requests to A&AI", Value: float64(len(asked)), Target: new(0.0)}}, err
}

func countIdle(_ *bench, used result) []figure {
	needed, others := 0, 0
	for kind, n := range used.requests {
		if kind.needed() {
			needed += n
		} else {
			others += n
		}
	}
	figures := []figure{
		{Name: "requests/s for Leases and watches", Value: float64(needed) / used.length.Seconds()},
		{Name: "requests/s for anything else", Value: float64(others) / used.length.Seconds(), Peer: "24.4", Target: new(0.0)},
	}
	together := 0.0
	for _, name := range []string{"monitor", "controller"} {
		percent := 100 * used.processes[name].cpu.Seconds() / used.length.Seconds()
		together += percent
		figures = append(figures, figure{
			Name: name + " CPU % of a core", Value: percent,
			Peer: map[string]string{"monitor": "0.1", "controller": "2.2"}[name], Target: new(1.0),
		})
	}
	return append(figures, figure{Name: "CPU together, % of a core", Value: together, Target: new(1.0)})
}
