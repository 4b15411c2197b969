package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// row is a row of the table.
type row struct {
	id, work string
	// prepare brings about what the row needs, measure does its work. Only the latter is counted.
	prepare func(context.Context, *bench) error
	measure func(context.Context, *bench) ([]figure, error)
	// counted adds the figures that come from what was counted meanwhile; nil when there are none.
	counted func(*bench, result) []figure
}

// stages are all rows, in the order in which they are measured: each finds what those before it in its stage have left. A stage has a control plane of its own.
func stages() [][]row {
	return [][]row{{
		{"fill", "500 apps × (10 pods, 5 ConfigMaps, Deployment, Service): all bundles right after the monitor starts", prepareFill, measureFill, countFill},
		{"restart", "monitor restarted, nothing to do", ensureBundles, measureRestart, countRestart},
		{"flip", "one pod changes → its bundle", ensureBundles, measureFlip, nil},
		{"burst-apps", "200 pods change at once, over 100 apps", prepareBurstApps, measureBurstApps, countBurst(200, "200")},
		{"burst-one", "200 pods change at once in one 200-pod app", prepareBurstOne, measureBurstOne, countBurst(10, "369")},
		{"big", "one app of 2,000 and of 5,000 pods, which change, while one pod of another app changes → its bundle", ensureBundles, measureBig, nil},
		{"scopes", "1,000 scopes × 10 Deployments: all judged after the controller starts", prepareScopes, measureScopes, countScopes},
		{"scope-flip", "one workload changes → its scope, 1,000 scopes", ensureScopes, measureScopeFlip, nil},
		{"aai", "one pod changes → acknowledged by A&AI", prepareInventory, measureInventory, nil},
		{"aai-rate", "100 pods change in a second, for 20 s → each acknowledged by A&AI", prepareInventory, measureRate, nil},
		{"aai-restart", "controller restarted, nothing to do for A&AI", prepareInventory, measureResync, nil},
		{"idle", "nothing changes, 1,000 scopes, 500 bundles", prepareIdle, measureIdle, countIdle},
	}, {
		{"fleet-start", "100 clusters × 50 bundles × 20 resources: all connected and judged after the controller starts", prepareFleet, measureFleetStart, nil},
		{"fleet-flip", "one bundle of a member changes → its scope, 50 scopes over 100 clusters", ensureFleet, measureFleetFlip, nil},
		{"fleet-idle", "nothing changes in 100 clusters", ensureFleet, measureFleetIdle, countFleetIdle},
		{"fleet-rate", "bundles of 100 clusters change ever faster → their scopes", ensureFleet, measureFleetRate, nil},
	}, {
		{"status-cold", "first status of 5 apps × 50 clusters × 15 resources after the controller starts", prepareStatus, measureStatusCold, nil},
		{"status-summary", "20 clients ask for its summary", ensureStatus, measureStatusSummary, nil},
		{"status-all", "20 clients ask for all its resources", ensureStatus, measureStatusAll, nil},
		{"status-health", "20 clients ask how it fares", ensureStatus, measureStatusHealth, nil},
	}}
}

func rowIDs() []string {
	var ids []string
	for _, r := range slices.Concat(stages()...) {
		ids = append(ids, r.id)
	}
	return ids
}

// bench measures rows on one control plane.
type bench struct {
	*plane
	// apps and scopes are those that there are, with everything in them ready.
	apps      []app
	scopes    []scope
	inventory *inventory
	// fleet is the member clusters; nil until there are any.
	fleet *fleetBench
	// status is the group whose status is asked for; nil until there is one.
	status *statusBench
	// crashed are the pods that crash at the moment.
	crashed map[types.NamespacedName]bool
	// filled and judged say that monitor and controller run and have done their first work.
	filled, judged bool
	// burstFloor is the floor of a burst over many applications.
	burstFloor time.Duration
	// leftovers are deleted when the row has been measured.
	leftovers []app
	// samples is how many lone changes are measured.
	samples int
}

// measureRows measures the rows that are asked for and prints them.
func measureRows(ctx context.Context, o options, stdout, stderr io.Writer) error {
	report := newReport(o)
	for _, stage := range stages() {
		if len(o.only) > 0 {
			stage = slices.DeleteFunc(stage, func(r row) bool { return !slices.Contains(o.only, r.id) })
		}
		if len(stage) == 0 {
			continue
		}
		measured, err := measureStage(ctx, o, stage, stderr)
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, measured...)
	}
	report.print(stdout)
	if o.json != "" {
		return report.writeJSON(o.json)
	}
	return nil
}

// measureStage measures rows on a control plane of their own.
func measureStage(ctx context.Context, o options, stage []row, stderr io.Writer) (all []outcome, err error) {
	p, err := openPlane(ctx, o, stderr)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return nil, err
	}
	b := &bench{plane: p, crashed: map[types.NamespacedName]bool{}, samples: o.scaled(100, 10)}
	for _, r := range stage {
		measured, err := b.row(ctx, r)
		if err != nil {
			err = fmt.Errorf("cannot measure %q: %w", r.id, err)
			if ctx.Err() == nil {
				err = fmt.Errorf("%w\n%s", err, b.hs.LogTails())
			}
			return nil, err
		}
		all = append(all, measured)
	}
	return all, nil
}

// row measures one row.
func (b *bench) row(ctx context.Context, r row) (outcome, error) {
	b.logf("%s: preparing", r.id)
	if err := r.prepare(ctx, b); err != nil {
		return outcome{}, err
	}
	w, err := b.open(ctx)
	if err != nil {
		return outcome{}, err
	}
	b.logf("%s: %s", r.id, r.work)
	figures, err := r.measure(ctx, b)
	if err != nil {
		return outcome{}, err
	}
	used, err := w.close(ctx)
	if err != nil {
		return outcome{}, err
	}
	for _, a := range b.leftovers {
		if err := b.deleteApp(ctx, a); err != nil {
			return outcome{}, err
		}
	}
	b.leftovers = nil
	if r.counted != nil {
		figures = append(figures, r.counted(b, used)...)
	}
	for _, f := range figures {
		b.logf("%s: %s: %s", r.id, f.Name, number(f.Value))
	}
	return newOutcome(r, figures, used, b.options.scale), nil
}

// warmUp is the number of samples that do not count: connections and caches are warm then.
const warmUp = 3

// floorOf is the floor of a way: the p95 of its hops, together.
func floorOf(hops [][]time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, hop := range hops {
		sum += percentile(hop, 95)
	}
	return sum
}

// latencies are figures of a way and of its floor, measured in turn.
func latencies(way []time.Duration, hops [][]time.Duration, peer50, peer95 string, times float64) []figure {
	p95, sum := percentile(way, 95), floorOf(hops)
	return []figure{
		{Name: "p50 ms", Value: milliseconds(percentile(way, 50)), Peer: peer50},
		{Name: "p95 ms", Value: milliseconds(p95), Peer: peer95},
		{Name: "floor p95 ms", Value: milliseconds(sum)},
		{Name: "p95 / floor", Value: float64(p95) / float64(sum), Target: new(times)},
	}
}

// targetOf is the number of what is changed by the i-th of so many lone changes, counted from 0. The second half of them changes
// what the first half has changed, so that half of them are crashes, and half are recoveries: with a number of its own for each, all would be crashes.
func targetOf(i, changes int) int { return i % ((changes + 1) / 2) }

// alternate measures a way and the hops of its floor in turn. The way is told the number of what it is to change.
func (b *bench) alternate(ctx context.Context, way func(context.Context, int) (time.Duration, error), hops ...*hop) ([]time.Duration, [][]time.Duration, error) {
	var took []time.Duration
	floors := make([][]time.Duration, len(hops))
	for i := range warmUp + b.samples {
		for n, h := range hops {
			d, err := h.measure(ctx)
			if err != nil {
				return nil, nil, err
			}
			if i >= warmUp {
				floors[n] = append(floors[n], d)
			}
		}
		d, err := way(ctx, targetOf(i, warmUp+b.samples))
		if err != nil {
			return nil, nil, err
		}
		if i >= warmUp {
			took = append(took, d)
		}
	}
	return took, floors, nil
}

// floorAlone measures the hops of a floor while nothing else is done.
func (b *bench) floorAlone(ctx context.Context, hops ...*hop) ([][]time.Duration, error) {
	if err := b.bundles.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	_, floors, err := b.alternate(ctx, func(context.Context, int) (time.Duration, error) { return 0, nil }, hops...)
	return floors, err
}
