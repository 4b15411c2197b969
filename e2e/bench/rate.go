package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// changesPerSecond is the rate of the row aai-rate, and rateSeconds how long it is kept up.
	changesPerSecond = 100
	rateSeconds      = 20
	// pageSize is how many documents HealthScope reads from A&AI with one request.
	pageSize = 500
)

// lags collects how long changes took that are under way at the same time.
type lags[K comparable] struct {
	mu   sync.Mutex // guards the rest
	took []time.Duration
	busy map[K]bool
}

// begin says whether a thing is free to be changed, and takes it.
func (l *lags[K]) begin(name K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[name] {
		return false
	}
	l.busy[name] = true
	return true
}

func (l *lags[K]) end(name K, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, name)
	l.took = append(l.took, took)
}

// measureRate changes a hundred pods in a second, in turn, and measures how long it takes until A&AI has acknowledged each.
// A pod whose last change is not acknowledged yet is left out.
func measureRate(ctx context.Context, b *bench) ([]figure, error) {
	in := b.inventory
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	before, err := b.syncLags(ctx)
	if err != nil {
		return nil, err
	}
	l := &lags[types.NamespacedName]{busy: map[types.NamespacedName]bool{}}
	group, changing := errgroup.WithContext(ctx)
	changes := b.options.scaled(changesPerSecond*rateSeconds, changesPerSecond)
	begin := time.Now()
	for i := range changes {
		if err := pause(changing, time.Until(begin.Add(time.Duration(i)*time.Second/changesPerSecond))); err != nil {
			break // One of the changes has failed.
		}
		t := target{app: in.apps[i%len(in.apps)], pod: i / len(in.apps) % 10}
		if !l.begin(t.name()) {
			continue
		}
		crash := !b.crashed[t.name()]
		b.crashed[t.name()] = crash
		group.Go(func() error {
			took, err := b.changeToInventory(changing, t, crash)
			l.end(t.name(), took)
			return err
		})
	}
	offered := time.Since(begin)
	if err := group.Wait(); err != nil {
		return nil, err
	}
	requests, err := b.hs.Requests(ctx, last)
	if err != nil {
		return nil, err
	}
	after, err := b.syncLags(ctx)
	if err != nil {
		return nil, err
	}
	lag, err := quantileSince(before, after, 0.95)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{Name: "changes per s", Value: float64(len(l.took)) / offered.Seconds()},
		{Name: "p50 ms", Value: milliseconds(percentile(l.took, 50))},
		{Name: "p95 ms", Value: milliseconds(percentile(l.took, 95)), Peer: "30000 (notify interval)", Target: new(1000.0)},
		{Name: "state change seen → acknowledged p95 ms", Value: 1000 * lag, Target: new(1000.0)},
		{Name: "requests to A&AI per change", Value: float64(len(requests)) / float64(len(l.took))},
	}
	if err := b.heal(ctx); err != nil {
		return nil, err
	}
	clear(in.documents)
	return figures, b.awaitInventory(ctx)
}

// lastRequest returns the number of the last request that A&AI has received.
func (b *bench) lastRequest(ctx context.Context) (uint64, error) {
	all, err := b.hs.Requests(ctx, 0)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Seq, nil
}

// measureResync starts the controller again when nothing is to be done for A&AI, and counts what it asks of it.
func measureResync(ctx context.Context, b *bench) ([]figure, error) {
	objects, err := b.hs.Objects(ctx)
	if err != nil {
		return nil, err
	}
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.hs.StopController(); err != nil {
		return nil, err
	}
	if err := b.hs.StartController(ctx); err != nil {
		return nil, err
	}
	if err := b.awaitSynced(ctx, len(objects)); err != nil {
		return nil, err
	}
	if err := b.plane.scopes.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	requests, err := b.hs.Requests(ctx, last)
	if err != nil {
		return nil, err
	}
	reads := slices.DeleteFunc(slices.Clone(requests), func(r installation.Request) bool {
		path, _, _ := strings.Cut(r.Path, "?")
		return r.Method != http.MethodGet || !strings.HasSuffix(path, "/k8s-resources")
	})
	writes := slices.DeleteFunc(requests, func(r installation.Request) bool { return r.Method == http.MethodGet })
	pages := float64((len(objects) + pageSize - 1) / pageSize)
	return []figure{
		{Name: "documents", Value: float64(len(objects))},
		{Name: "pages read", Value: float64(len(reads)), Target: &pages},
		{Name: "writes", Value: float64(len(writes)), Target: new(0.0)},
	}, nil
}

// awaitSynced waits until the controller says that so many documents are as they should be. Nothing announces it.
func (b *bench) awaitSynced(ctx context.Context, documents int) error {
	line := fmt.Sprintf(`healthscope_aai_objects{state="synced"} %d`, documents-1) // All but the floor's.
	return poll(ctx, line, func(ctx context.Context) (bool, error) {
		_, text, err := b.hs.Text(ctx, b.hs.Metrics)
		return strings.Contains(text, line+"\n"), err
	})
}
