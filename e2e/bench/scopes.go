package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// This file has the rows about scopes (scopes and scope-flip), and those without changes (restart and idle).

// measureScopes measures scopes that select their Deployments by label, and then the same scopes with references. It leaves
// those with references.
func measureScopes(ctx context.Context, b *bench) ([]figure, error) {
	var byReference, byLabel []scope
	for i := range b.options.scaled(1000, 10) {
		s := scope{namespace: scopeNamespace(i), name: fmt.Sprintf("scope-%04d", i), deployments: 10}
		byReference = append(byReference, s)
		s.byLabel = true
		byLabel = append(byLabel, s)
	}
	if err := b.createScopes(ctx, byLabel); err != nil {
		return nil, err
	}
	b.logf("created %d scopes", len(byLabel))
	labels, err := b.judgeScopes(ctx, byLabel)
	if err != nil {
		return nil, err
	}
	if err := b.replaceScopes(ctx, byReference); err != nil {
		return nil, err
	}
	b.scopes = byReference
	references, err := b.judgeScopes(ctx, byReference)
	n := float64(len(byReference))
	return []figure{
		{name: "s", value: references.seconds, peer: "500", target: new(20.0)},
		{name: "writes", value: references.writes, floor: n, target: &n},
		{name: "peak MiB", value: references.peak, peer: "192-213"},
		{name: "(floor: references) by label s", value: labels.seconds, floor: references.seconds, times: 1.2},
		{name: "by label writes", value: labels.writes, floor: n, target: &n},
		{name: "(floor: references) by label peak MiB", value: labels.peak, floor: references.peak, times: 1.2},
	}, err
}

// judged is the time in seconds, the number of writes and the peak memory in MiB of the first judgement of scopes.
type judged struct{ seconds, writes, peak float64 }

// judgeScopes starts the controller, and measures until all scopes are healthy and nothing changes any more.
func (b *bench) judgeScopes(ctx context.Context, scopes []scope) (judged, error) {
	var took time.Duration
	used, err := b.used(ctx, func() (err error) {
		took, err = startUntil(ctx, b.hs.StartController, b.scopeBoard.expect("all scopes to be healthy after the start of the controller", allHealthy(scopes)))
		if err != nil {
			return err
		}
		return b.scopeBoard.quiet(ctx, quietTime)
	})
	return judged{took.Seconds(), used.scopes, b.peak("controller")}, err
}

// replaceScopes stops the controller, and replaces the existing scopes by scopes with the same names and Deployments.
func (b *bench) replaceScopes(ctx context.Context, scopes []scope) error {
	if err := b.hs.StopController(); err != nil {
		return err
	}
	left := b.scopeBoard.count() - len(scopes)
	if err := each(ctx, len(scopes), func(ctx context.Context, i int) error { return b.delete(ctx, scopes[i].object()) }); err != nil {
		return err
	}
	if err := poll(ctx, "the scopes to be deleted", func(context.Context) (bool, error) { return b.scopeBoard.count() == left, nil }); err != nil {
		return err
	}
	return each(ctx, len(scopes), func(ctx context.Context, i int) error { return b.create(ctx, scopes[i].object()) })
}

// needScopes prepares scopes that the controller has judged.
func (b *bench) needScopes(ctx context.Context) error {
	if len(b.scopes) == 0 {
		if _, err := measureScopes(ctx, b); err != nil {
			return err
		}
	}
	return b.scopeBoard.quiet(ctx, quietTime)
}

func measureScopeFlip(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needScopes(ctx); err != nil {
		return nil, err
	}
	floor, err := b.needFloor(ctx)
	if err != nil {
		return nil, err
	}
	deployment, err := floor.deployment(ctx, "floor-deployment")
	if err != nil {
		return nil, err
	}
	hop, err := floor.scope(ctx, "floor-scope")
	if err != nil {
		return nil, err
	}
	down := map[int]bool{}
	flip := func(ctx context.Context, n int) (time.Duration, error) {
		s := b.scopes[n]
		ready, replicas := s.deployments-1, int32(2)
		if down[n] {
			ready, replicas = s.deployments, 3
		}
		seen := b.scopeBoard.expect("the scope of a workload", checks[scopeStatus]{s.key(): counts(ready, s.deployments)})
		begin := time.Now()
		if err := b.scale(ctx, s.workload(n%s.deployments), replicas); err != nil {
			return 0, err
		}
		down[n] = !down[n]
		at, err := seen(ctx)
		return at.Sub(begin), err
	}
	took, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) { return flip(ctx, i*7%len(b.scopes)) }, deployment, hop)
	if err != nil {
		return nil, err
	}
	for n, is := range down {
		if is {
			if _, err := flip(ctx, n); err != nil {
				return nil, err
			}
		}
	}
	f := latency("", took, 3, floors...)
	f.peer = "477700"
	_, err = b.scopeBoard.await(ctx, "all scopes to be healthy again", allHealthy(b.scopes))
	return []figure{f}, err
}

// stillRight checks that all bundles and scopes are right.
func (b *bench) stillRight(ctx context.Context) error {
	if _, err := b.bundles.await(ctx, "all bundles to be right still", allRight(b.apps)); err != nil {
		return err
	}
	_, err := b.scopeBoard.await(ctx, "all scopes to be healthy still", allHealthy(b.scopes))
	return err
}

// restartQuiet is how long the usage is measured after a restart: a new leader reads A&AI again when the last request of its
// predecessor must have ended, after half a minute.
const restartQuiet = 45 * time.Second

func measureRestart(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needInventory(ctx); err != nil {
		return nil, err
	}
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	documents, err := b.syncedDocuments(ctx)
	if err != nil {
		return nil, err
	}
	var took time.Duration
	used, err := b.used(ctx, func() error {
		begin := time.Now()
		for _, do := range []func() error{
			b.hs.StopMonitor, b.hs.StopController,
			func() error { return b.hs.StartMonitor(ctx) }, func() error { return b.hs.StartController(ctx) },
			func() error { return b.awaitLooked(ctx) }, func() error { return b.awaitSynced(ctx, documents) },
		} {
			if err := do(); err != nil {
				return err
			}
		}
		took = time.Since(begin)
		return pause(ctx, b.options.scaledTime(restartQuiet, quietTime))
	})
	if err != nil {
		return nil, err
	}
	_, read, writes, err := b.requestsSince(ctx, last)
	if err != nil {
		return nil, err
	}
	pages := float64((documents + pageSize - 1) / pageSize)
	return []figure{
		{name: "s", value: took.Seconds()},
		{name: "writes of bundles", value: used.bundles, peer: "8500", target: new(0.0)},
		{name: "writes of scopes", value: used.scopes, target: new(0.0)},
		{name: "writes to A&AI", value: float64(writes), target: new(0.0)},
		{name: "pages read from A&AI", value: float64(read), floor: pages, times: 2}, // At the start, and once no predecessor can write any more.
	}, b.stillRight(ctx)
}

// awaitLooked waits until the monitor has reconciled all bundles since its start.
func (b *bench) awaitLooked(ctx context.Context) error {
	return poll(ctx, fmt.Sprintf("the monitor to look at %d bundles", len(b.apps)), func(ctx context.Context) (bool, error) {
		m, err := scrape(ctx, http.DefaultClient, b.hs.MonitorMetrics)
		return m.sum("controller_runtime_reconcile_total", "controller=monitor") >= float64(len(b.apps)) && m.sum("workqueue_depth", "name=monitor") == 0, err
	})
}

func measureIdle(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needInventory(ctx); err != nil {
		return nil, err
	}
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	used, err := b.used(ctx, func() error { return pause(ctx, b.options.scaledTime(time.Minute, 3*time.Second)) })
	if err != nil {
		return nil, err
	}
	seconds := time.Since(begin).Seconds()
	requests, _, _, err := b.requestsSince(ctx, last)
	if err != nil {
		return nil, err
	}
	return []figure{
		{name: "requests/s", value: (used.requests["monitor"] + used.requests["controller"]) / seconds, peer: "24.4", target: new(1.0)},
		{name: "writes", value: used.bundles + used.scopes, target: new(0.0)},
		{name: "requests to A&AI", value: float64(requests), target: new(0.0)},
		{name: "CPU %", value: 100 * (used.cpu["monitor"] + used.cpu["controller"]) / seconds, peer: "0.1 + 2.2", target: new(1.0)},
	}, b.stillRight(ctx)
}
