package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// row is a row of the table. A new one is a function and an entry in stages.
type row struct {
	id, work string
	// measure does the work. It prepares what it needs itself, checks the results, and leaves everything Ready.
	measure func(context.Context, *bench) ([]figure, error)
}

// stages returns all rows, in the order in which they are measured. Each stage has its own control plane. A row uses what the
// earlier rows of its stage have left.
func stages() [][]row {
	return [][]row{{
		{"fill", "500 apps × (10 pods, 5 ConfigMaps, Deployment, Service): all bundles right after the monitor starts", measureFill},
		{"flip", "one pod changes → its bundle", measureFlip},
		{"burst", "200 pods change at once, of 100 apps, then of one", measureBurst},
		{"big", "one pod changes → its bundle, beside an app of 2,000 pods that changes all the time", measureBig},
		{"scopes", "1,000 scopes × 10 Deployments: all judged after the controller starts; the same by label and by reference", measureScopes},
		{"scope-flip", "one workload changes → its scope, of 1,000", measureScopeFlip},
		{"aai", "one pod changes → acknowledged by A&AI, alone and at 100 changes a second", measureInventory},
		{"restart", "monitor and controller restart, nothing has changed", measureRestart},
		{"idle", "nothing changes, 500 bundles, 1,000 scopes", measureIdle},
	}, {
		{"fleet", "100 clusters × 50 bundles × 20 resources: all judged after the controller starts; then changes → their scopes", measureFleet},
		{"flood", "one of the clusters changes 1,000 times a second, a bundle of another changes → its scope", measureFlood},
	}, {
		{"probes", "1,000 Services probed every ten seconds: all as they should be; then all lost at one moment", measureProbes},
	}, {
		{"status", "status documents of 5 apps × 50 clusters × 15 resources: the first one, then 20 clients at once", measureStatus},
		{"deploy", "5 apps × 50 clusters × 15 resources are deployed, which are there already; beside a dead cluster; 10,000 resources", measureDeploy},
	}}
}

func rowIDs() []string {
	var ids []string
	for _, r := range slices.Concat(stages()...) {
		ids = append(ids, r.id)
	}
	return ids
}

// bench is the state that the rows of a stage share.
type bench struct {
	*plane
	// apps and scopes are those that exist, with everything in them Ready between rows.
	apps   []app
	scopes []scope
	// crashed are the pods that crash at the moment.
	crashed map[podOf]bool
	// floor, and bundleWay, the hops of the floor from a pod to its bundle, are nil until a row needs them.
	floor     *floor
	bundleWay []hop
	// inventory and fleet are nil until a row has created them.
	inventory *inventory
	fleet     *fleet
}

// measureRows measures the requested rows and reports them.
func measureRows(ctx context.Context, o options, stdout, stderr io.Writer) error {
	var all []result
	for _, stage := range stages() {
		if len(o.rows) > 0 {
			stage = slices.DeleteFunc(stage, func(r row) bool { return !slices.Contains(o.rows, r.id) })
		}
		if len(stage) == 0 {
			continue
		}
		measured, err := measureStage(ctx, o, stage, stderr)
		if err != nil {
			return err
		}
		all = append(all, measured...)
	}
	return report(o, all, stdout)
}

// measureStage measures rows on their own control plane.
func measureStage(ctx context.Context, o options, stage []row, stderr io.Writer) (all []result, err error) {
	p, err := openPlane(ctx, o, stderr)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return nil, err
	}
	b := &bench{plane: p, crashed: map[podOf]bool{}}
	for _, r := range stage {
		b.logf("%s: %s", r.id, r.work)
		figures, err := r.measure(ctx, b)
		if err != nil {
			err = fmt.Errorf("cannot measure %q: %w", r.id, err)
			if ctx.Err() == nil {
				err = fmt.Errorf("%w\n%s", err, b.hs.LogTails())
			}
			return nil, err
		}
		for _, f := range figures {
			b.logf("%s: %s: %s", r.id, f.name, number(f.value))
			all = append(all, result{r.id, f})
		}
	}
	return all, nil
}

// warmUp is the number of samples that do not count: they warm up connections and caches.
const warmUp = 3

// alternate measures single changes in turn with the hops of their floor. change receives the number of its target. The second
// half of the changes has the same targets as the first half, so that half of the changes are crashes and half are recoveries.
func (b *bench) alternate(ctx context.Context, change func(context.Context, int) (time.Duration, error), hops ...hop) (took []time.Duration, floors [][]time.Duration, err error) {
	n := warmUp + b.options.scaled(100, 10)
	floors = make([][]time.Duration, len(hops))
	for i := range n {
		for h, measure := range hops {
			d, err := measure(ctx)
			if err != nil {
				return nil, nil, err
			}
			floors[h] = append(floors[h], d)
		}
		d, err := change(ctx, i%((n+1)/2))
		if err != nil {
			return nil, nil, err
		}
		took = append(took, d)
	}
	for h := range floors {
		floors[h] = floors[h][warmUp:]
	}
	return took[warmUp:], floors, nil
}

// atRate makes targets crash or recover for a time, at rate changes per second, and returns how long each change took. It skips
// a target whose last change is still in progress. down is true for the targets that crash.
func atRate[T comparable](ctx context.Context, rate int, length time.Duration, down map[T]bool, target func(i int) T, change func(context.Context, T, bool) (time.Duration, error)) ([]time.Duration, error) {
	changes := max(int(length.Seconds()*float64(rate)), 1)
	results := make(chan time.Duration, changes)
	var busy sync.Map
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for i := range changes {
		if pause(ctx, time.Until(begin.Add(time.Duration(i)*time.Second/time.Duration(rate)))) != nil {
			break // A change has failed; Wait returns why.
		}
		t := target(i)
		if _, is := busy.LoadOrStore(t, true); is {
			continue
		}
		crash := !down[t]
		down[t] = crash
		group.Go(func() error {
			d, err := change(ctx, t, crash)
			results <- d
			busy.Delete(t)
			return err
		})
	}
	err := group.Wait()
	close(results)
	var took []time.Duration
	for d := range results {
		took = append(took, d)
	}
	return took, err
}
