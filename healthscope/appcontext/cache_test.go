package appcontext_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// runCache returns a cache that runs until the test ends.
func runCache(t testing.TB, store *appcontext.Store, options appcontext.CacheOptions) *appcontext.Cache {
	t.Helper()
	cache := appcontext.NewCache(store, options)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := cache.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	return cache
}

// ask reads a context from a cache, and returns the error.
func ask(ctx context.Context, cache *appcontext.Cache, id string) error {
	_, _, err := cache.Snapshot(ctx, id)
	return err
}

// snapshotSince reads a context from a cache until the revision is the given one or later.
func snapshotSince(t testing.TB, cache *appcontext.Cache, id string, revision int64) (s *appcontext.Snapshot) {
	t.Helper()
	eventually(t, "the cache does not catch up", func(ctx context.Context) (err error) {
		if s, _, err = cache.Snapshot(ctx, id); err == nil && s.Revision() < revision {
			return fmt.Errorf("revision %d, want %d", s.Revision(), revision)
		}
		return err
	})
	return s
}

func TestCacheStaysCurrentWithoutWrites(t *testing.T) {
	const interval = 250 * time.Millisecond // A watch without progress is given up after five intervals, which must not happen on a busy machine.
	options := optionsOf(ownEtcd(t, controlplane.EtcdOptions{}))
	options.ProgressInterval = interval
	f := newFixture(t, options)
	cache := runCache(t, f.store, appcontext.CacheOptions{})
	first, read, err := cache.Snapshot(t.Context(), f.ac.ID())
	noError(t, err)
	// Without progress reports, the watch would have been restarted twice by then, and the context read again.
	eventually(t, "the cache does not confirm what it knows", func(ctx context.Context) error {
		last, asOf, err := cache.Snapshot(ctx, f.ac.ID())
		if err == nil && !last.Same(first) {
			t.Fatal("the context was read again")
		}
		if age := asOf.Sub(read); err == nil && age < 10*interval {
			return fmt.Errorf("it is as of %s after it was read", age)
		}
		return err
	})
	noError(t, f.ac.UpdateResourceValue(t.Context(), f.r, "other"))
	var none *appcontext.Snapshot
	if s := snapshotSince(t, cache, f.ac.ID(), f.snapshot(t).Revision()); s.Same(first) || s.Same(none) || none.Same(s) || !none.Same(nil) {
		t.Error("a snapshot with another value, or none, counts as the same, or none does not")
	}
}

func TestCacheAnswersWithAsOfDuringOutage(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	f := newFixture(t, optionsOf(etcd))
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: time.Second, ProgressInterval: 20 * time.Millisecond})
	clock := clocktesting.NewFakeClock(time.Now())
	cache := runCache(t, store, appcontext.CacheOptions{Idle: time.Hour, Clock: clock})
	other, _ := newContext(t, f.store)
	noError(t, errors.Join(ask(t.Context(), cache, f.ac.ID()), ask(t.Context(), cache, other.ID())))
	noError(t, etcd.Kill())
	killed := time.Now()
	read := func() { // The last known context, as of before the outage.
		t.Helper()
		s, asOf, err := cache.Snapshot(t.Context(), f.ac.ID())
		if err != nil || len(contents(s)) == 0 || asOf.IsZero() || asOf.After(killed) {
			t.Fatalf("want the last known context, as of before %s, got %s: %v", killed, asOf, err)
		}
	}
	read()
	unknown := make(chan error, 1)
	go func() { unknown <- ask(t.Context(), cache, "4711") }()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	answers := 0
	for waiting := true; waiting; {
		select {
		case err := <-unknown:
			waiting = false
			wantError(t, err, appcontext.ErrUnavailable)
		case <-ticker.C:
			read()
			answers++
		}
	}
	if answers < 5 {
		t.Errorf("the cache gave %d answers about what it knows while it tried to read what it does not", answers)
	}
	read()
	noError(t, etcd.Start(t.Context()))
	eventually(t, "nothing can be written", func(ctx context.Context) error { return just(f.ac.AddApp(ctx, f.h, "b")) })
	eventually(t, "the cache does not come back", func(ctx context.Context) error {
		s, asOf, err := cache.Snapshot(ctx, f.ac.ID())
		if _, ok := s.App("b"); !ok || !asOf.After(killed) {
			return fmt.Errorf("%d keys, as of %s: %w", len(contents(s)), asOf, err)
		}
		return nil
	})
	clock.Step(time.Hour / 4)
	for n := range 10 { // Between two of these reads, the cache evicts what is idle.
		wantError(t, ask(t.Context(), cache, fmt.Sprint(n)), appcontext.ErrNotFound)
	}
	noError(t, etcd.Kill())
	noError(t, ask(t.Context(), cache, other.ID())) // It is still held, although nobody has asked for it since.
}

// These are metrics of etcd: the number of watches, and the number of reads that it has served.
const (
	watchers = "etcd_debugging_mvcc_watcher_total"
	ranges   = "etcd_mvcc_range_total"
)

// metric returns the value of one of etcd's metrics.
func metric(ctx context.Context, t testing.TB, etcd *controlplane.Etcd, name string) string {
	t.Helper()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, etcd.Endpoint()+"/metrics", http.NoBody))(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	noError(t, err)
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	t.Fatalf("etcd has no metric %q", name)
	return ""
}

// reads reports whether a cache reads a context from etcd.
func reads(ctx context.Context, t testing.TB, etcd *controlplane.Etcd, cache *appcontext.Cache, id string) bool {
	t.Helper()
	before := metric(ctx, t, etcd, ranges)
	noError(t, ask(ctx, cache, id))
	return metric(ctx, t, etcd, ranges) != before
}

func TestIdleContextIsEvictedWhileOthersStay(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, optionsOf(etcd))
	const idle = time.Hour
	clock := clocktesting.NewFakeClock(time.Now())
	wanted, _ := newContext(t, store)
	other, _ := newContext(t, store)
	cache := runCache(t, store, appcontext.CacheOptions{Idle: idle, Clock: clock})
	if n := metric(t.Context(), t, etcd, watchers); n != "0" {
		t.Errorf("nothing was asked for yet, but etcd has %s watchers", n)
	}
	if !reads(t.Context(), t, etcd, cache, wanted.ID()) || !reads(t.Context(), t, etcd, cache, other.ID()) {
		t.Fatal("etcd does not count what is read")
	}
	eventually(t, "the context that is not asked for is still held", func(ctx context.Context) error {
		for range 8 {
			clock.Step(idle / 4)
			if reads(ctx, t, etcd, cache, wanted.ID()) {
				t.Fatal("the context that is asked for all the time was read again")
			}
		}
		if !reads(ctx, t, etcd, cache, other.ID()) {
			return errors.New("it was not read again")
		}
		return nil
	})
}

func TestCacheEvictsBeyondMaxContexts(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, optionsOf(etcd))
	var ids []string
	for range 20 {
		ac, _ := newContext(t, store)
		ids = append(ids, ac.ID())
	}
	cache := runCache(t, store, appcontext.CacheOptions{MaxContexts: 4})
	var wait sync.WaitGroup
	for range 4 { // These are more contexts than the cache can hold, at the same time.
		for _, id := range ids {
			wait.Go(func() {
				if s, _, err := cache.Snapshot(t.Context(), id); err != nil || s.ID() != id || len(contents(s)) == 0 {
					t.Errorf("context %s: %v", id, err)
				}
			})
		}
	}
	wait.Wait()
	for _, id := range ids {
		noError(t, ask(t.Context(), cache, id))
	}
	if reads(t.Context(), t, etcd, cache, ids[19]) {
		t.Error("the context that was asked for last was read again")
	}
	if !reads(t.Context(), t, etcd, cache, ids[0]) {
		t.Error("the context that was asked for longest ago is still held")
	}
}

func TestCacheKeepsChangesDuringRead(t *testing.T) {
	store := open(t, appcontext.Options{})
	cache := runCache(t, store, appcontext.CacheOptions{})
	const rounds, changes = 40, 20
	for range rounds {
		ac, h := newContext(t, store)
		var writer sync.WaitGroup
		begun := make(chan struct{})
		writer.Go(func() {
			for n := range changes {
				if err := set(t.Context(), store, h, map[string]any{fmt.Sprintf("level%d", n): n}); err != nil {
					t.Error(err)
				}
				if n == changes/4 {
					close(begun)
				}
			}
		})
		<-begun
		snapshotSince(t, cache, ac.ID(), 0) // The cache may not have seen yet that the context was created.
		writer.Wait()
		eventually(t, "the cache has lost a change", func(ctx context.Context) error {
			s, _, err := cache.Snapshot(ctx, ac.ID())
			if err == nil && len(contents(s)) != changes+1 {
				err = fmt.Errorf("%d of %d keys", len(contents(s)), changes+1)
			}
			return err
		})
	}
}

func TestCacheWithoutRunIsUnavailable(t *testing.T) {
	cache := appcontext.NewCache(open(t, appcontext.Options{Timeout: 50 * time.Millisecond}), appcontext.CacheOptions{})
	wantError(t, ask(t.Context(), cache, "1"), appcontext.ErrUnavailable)
	wantError(t, ask(t.Context(), cache, ""), appcontext.ErrInvalid)
	wantError(t, just(cache.View(t.Context(), appcontext.ClusterRef("p", "a/b"), "")), appcontext.ErrInvalid)
}

func TestClosedStoreEndsWaitForCache(t *testing.T) {
	t.Parallel()
	listener := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	store := open(t, appcontext.Options{Endpoints: []string{"http://" + listener.Addr().String()}, Timeout: testTimeout})
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout/2)
	defer cancel()
	ran, answered := make(chan error, 1), make(chan error, 1)
	go func() { ran <- cache.Run(ctx) }()
	go func() { answered <- ask(ctx, cache, "1") }()
	connection := must(listener.Accept())(t) // The cache sends a read, and gets no response.
	defer func() { _ = connection.Close() }()
	closeStore(t, store)
	wantError(t, <-answered, appcontext.ErrClosed)
	wantError(t, <-ran, appcontext.ErrClosed)
}

func TestTheCacheLeavesNothingBehind(t *testing.T) {
	client := rawClient(t)
	before := goleak.IgnoreCurrent()
	store := must(appcontext.Open(appcontext.Options{Endpoints: client.Endpoints(), ProgressInterval: 10 * time.Millisecond}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ac, _ := newContext(t, store)
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	noError(t, ask(ctx, cache, ac.ID()))
	wantError(t, ask(ctx, cache, "4711"), appcontext.ErrNotFound)
	cancel()
	noError(t, <-done)
	wantError(t, ask(ctx, cache, ac.ID()), context.Canceled) // It no longer answers from memory.
	closeStore(t, store)
	goleak.VerifyNone(t, before)
}

// TestCacheReportsChanges asserts that the cache reports changes although no context is requested, and for all contexts of a
// group. It does not report saved bundles.
func TestCacheReportsChanges(t *testing.T) {
	f, ctx := newFixture(t, appcontext.Options{}), t.Context()
	old, h := newContext(t, f.store)
	next, _ := newContext(t, f.store)
	noError(t, old.AddCompositeAppMeta(ctx, f.meta()))
	noError(t, next.AddCompositeAppMeta(ctx, f.meta()))
	var mu sync.Mutex
	all, reported := false, map[string]bool{}
	runCache(t, f.store, appcontext.CacheOptions{Idle: time.Millisecond, Changed: func(ids []string) {
		mu.Lock()
		defer mu.Unlock()
		all = all || ids == nil
		for _, id := range ids {
			reported[id] = true
		}
	}})
	expect := func(what string, is func() bool) {
		t.Helper()
		eventually(t, what+" is not reported", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if !is() {
				return fmt.Errorf("what is reported: %v", reported)
			}
			return nil
		})
	}
	expect("the beginning", func() bool { return all })
	noError(t, set(ctx, f.store, f.c, map[string]any{"status": "{}"}))
	noError(t, set(ctx, f.store, h, map[string]any{"status": state{"Updated"}}))
	expect("a change, or what was made for the same", func() bool { return reported[old.ID()] && reported[next.ID()] })
	mu.Lock()
	if reported[f.ac.ID()] {
		t.Error("a bundle that is saved is a change")
	}
	mu.Unlock()
	noError(t, set(ctx, f.store, f.c, map[string]any{"readystatus": "Available"}))
	expect("a change in a cluster", func() bool { return reported[f.ac.ID()] })
	mu.Lock()
	clear(reported)
	mu.Unlock()
	noError(t, f.store.RecordAction(ctx, appcontext.Record{Subject: f.subject, Action: action(appcontext.ActionApproved, "", 1)}))
	expect("an action", func() bool { return reported[old.ID()] && reported[next.ID()] })
}
