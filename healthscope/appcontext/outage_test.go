package appcontext_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// readers is the number of concurrent readers. Half of them read from a cache.
const readers = 20

// untorn returns an error if a view does not show a single revision. The writers of these tests write a number in one
// transaction to two places: to the state of the context and the revision of an action, or to the bundle and the seen level of
// the cluster.
func untorn(v appcontext.View) error {
	if v.Context == nil || len(v.Info.Actions) == 0 {
		return fmt.Errorf("nothing of context %q at revision %d", v.ContextID, v.Revision)
	}
	last := strconv.FormatInt(v.Info.Actions[len(v.Info.Actions)-1].Revision, 10)
	if status, err := v.Context.Status(); err != nil || string(status) != last {
		return fmt.Errorf("torn at revision %d: the last action is %s and the state %q: %w", v.Revision, last, status, err)
	}
	app, _ := v.Context.App("a")
	cluster, _ := app.Cluster("p+c")
	bundle, err := cluster.Bundle()
	seen, _ := cluster.Value("seen")
	if err != nil || bundle != string(seen) {
		return fmt.Errorf("torn at revision %d: bundle %q and seen %q: %w", v.Revision, bundle, seen, err)
	}
	return nil
}

// newScenario returns a context for the writers act and report.
func newScenario(t *testing.T, options appcontext.Options) *fixture {
	t.Helper()
	options.ProgressInterval = 20 * time.Millisecond
	f := newFixture(t, options)
	noError(t, errors.Join(f.act(t.Context(), 0), f.report(t.Context(), 0)))
	return f
}

// act writes the nth action.
func (f *fixture) act(ctx context.Context, n int64) error {
	r := appcontext.Record{Subject: f.subject, Action: action(appcontext.ActionInstantiated, f.ac.ID(), n)}
	return set(ctx, f.store, f.h, map[string]any{"status": state{strconv.FormatInt(n, 10)}}, r)
}

// report writes the nth bundle.
func (f *fixture) report(ctx context.Context, n int64) error {
	return set(ctx, f.store, f.c, map[string]any{"status": strconv.FormatInt(n, 10), "seen": n})
}

// gather starts readers that read and check views, until the test calls stop. It returns the number of views that they have read.
func gather(t *testing.T, f *fixture, cache *appcontext.Cache) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var views atomic.Int64
	for n := range readers {
		read := f.store.View
		if n%2 == 0 {
			read = cache.View
		}
		wait.Go(func() {
			last := int64(0)
			pace := time.NewTicker(5 * time.Millisecond) // Reads from memory without a pause would leave no CPU time for the writers.
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				view, err := read(ctx, f.subject, "")
				if errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, context.Canceled) {
					continue
				}
				if err == nil {
					err = untorn(view)
				}
				if err != nil || view.Revision < last {
					t.Errorf("reader %d has read revision %d after %d: %v", n, view.Revision, last, err)
					return
				}
				last = view.Revision
				views.Add(1)
			}
		})
	}
	stop = func() int64 {
		cancel()
		wait.Wait()
		return views.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// writeAll makes writes from 1 to last. Like a user, it repeats each until it succeeds.
func writeAll(t *testing.T, write func(context.Context, int64) error, last int64, acknowledged *atomic.Int64) {
	for n := int64(1); n <= last; n++ {
		err := write(t.Context(), n)
		for errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, appcontext.ErrConflict) {
			err = write(t.Context(), n)
		}
		if err != nil {
			t.Errorf("write %d: %v", n, err)
			return
		}
		acknowledged.Store(n)
	}
}

func TestOutageLosesNoWriteAndReadersContinue(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	options := optionsOf(etcd)
	options.Timeout = time.Second
	f := newScenario(t, options)
	cache := runCache(t, f.store, appcontext.CacheOptions{})
	stop := gather(t, f, cache)
	const actions, outages = 120, 3
	var acknowledged, reported atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() { writeAll(t, f.act, actions, &acknowledged) })
	writer.Go(func() { writeAll(t, f.report, actions, &reported) })
	for n := range int64(outages) {
		eventually(t, "no action is acknowledged", func(context.Context) error {
			if acknowledged.Load() < (n+1)*actions/(outages+1) {
				return fmt.Errorf("%d are", acknowledged.Load())
			}
			return nil
		})
		noError(t, etcd.Kill())
		noError(t, etcd.Start(t.Context()))
		compact(t, f.client)
	}
	writer.Wait()
	// Whatever the cache has missed, it gets the last action without a request to do so.
	eventually(t, "the store does not come back", func(ctx context.Context) error { return just(f.store.View(ctx, f.subject, "")) })
	view := viewOf(t, f.store, cache, f.subject, "")
	noError(t, untorn(view))
	if len(view.Info.Actions) != actions+1 {
		t.Errorf("want %d actions, got %d", actions+1, len(view.Info.Actions))
	}
	for n, a := range view.Info.Actions {
		if a.Revision != int64(n) {
			t.Fatalf("action %d is recorded at place %d", a.Revision, n)
		}
	}
	if stop() == 0 {
		t.Error("no reader has read anything")
	}
}

func TestFullEtcdReturnsErrNoSpaceAndCanBeRead(t *testing.T) {
	f := newFixture(t, optionsOf(ownEtcd(t, controlplane.EtcdOptions{Arguments: []string{"--quota-backend-bytes=4000000"}})))
	var err error
	for n := 0; err == nil && n < 100; n++ {
		_, err = f.ac.AddResource(t.Context(), f.c, fmt.Sprintf("r%d+Kind", n), strings.Repeat("x", 200_000))
	}
	wantError(t, err, appcontext.ErrNoSpace)
	if s := f.snapshot(t); len(contents(s)) < 4 {
		t.Errorf("want what there was, got %d keys", len(contents(s)))
	}
}
