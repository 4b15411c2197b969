package appcontext_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

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

// viewSince reads from a cache until the revision of the view is the given one or later.
func viewSince(t testing.TB, cache *appcontext.Cache, subject appcontext.DeploymentRef, revision int64) (view appcontext.View, err error) {
	t.Helper()
	eventually(t, "the cache does not catch up", func(ctx context.Context) error {
		view, err = cache.View(ctx, subject, "")
		if err == nil && view.Revision < revision {
			return fmt.Errorf("revision %d, want %d", view.Revision, revision)
		}
		return nil
	})
	return view, err
}

// revisionOf returns the current revision of etcd.
func revisionOf(t testing.TB, client *clientv3.Client) int64 {
	t.Helper()
	return must(client.Get(t.Context(), "/"))(t).Header.Revision
}

func TestCacheAnswersLikeStore(t *testing.T) {
	store := open(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	client := rawClient(t, endpoint(t))
	ctx, subject := t.Context(), group(t)
	ac := appcontext.NewAppContext(store)
	cache := runCache(t, store, appcontext.CacheOptions{})
	var a, c appcontext.Handle
	h := appcontext.ContextHandle(ac.InitAppContext())
	record := func(state appcontext.ActionState, n int64) appcontext.Record {
		return appcontext.Record{Subject: subject, Action: action(state, ac.ID(), n)}
	}
	if view := must(cache.View(ctx, subject, ""))(t); view.ContextID != "" || view.Context != nil || len(view.Info.Actions) != 0 {
		t.Errorf("want nothing yet, got %+v", view)
	}
	for n, change := range []func() error{
		func() error {
			_, err := ac.CreateCompositeApp(ctx)
			return err
		},
		func() error { return store.RecordAction(ctx, record(appcontext.ActionInstantiated, 1)) },
		func() (err error) { a, c, _ = add(t, ac, h, "a", "p+c", "r+Kind"); return nil },
		func() error { return set(ctx, store, c, map[string]any{"status": "{}"}) },
		func() error { return set(ctx, store, c, map[string]any{"status": nil}) },
		func() error { return ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "p"}) },
		func() error { return store.RecordAction(ctx, record(appcontext.ActionTerminated, 2)) },
		func() error { return ac.DeleteApp(ctx, a) },
		func() error { return ac.DeleteCompositeApp(ctx) },
	} {
		if err := change(); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		warm, err := viewSince(t, cache, subject, revisionOf(t, client))
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		cold := must(store.View(ctx, subject, ""))(t)
		if diff := cmp.Diff(viewContents(cold), viewContents(warm)); diff != "" {
			t.Errorf("step %d (-store +cache):\n%s", n, diff)
		}
	}
}

// viewContents returns the contents of a view, without revision and time.
func viewContents(v appcontext.View) map[string]any {
	all := map[string]any{"info": v.Info, "contexts": v.Contexts, "id": v.ContextID}
	for name, s := range map[string]*appcontext.Snapshot{"context": v.Context, "status": v.StatusContext} {
		if s != nil {
			all[name] = contents(s)
		}
	}
	return all
}

func TestCacheStaysCurrentWithoutWrites(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	const interval = 250 * time.Millisecond // A watch without progress is given up after five intervals, which must not happen on a busy machine.
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, ProgressInterval: interval})
	ac, h := newContext(t, store)
	add(t, ac, h, "cart", "west+bonn", "web+Deployment")
	cache := runCache(t, store, appcontext.CacheOptions{})
	first, read, err := cache.Snapshot(t.Context(), ac.ID())
	noError(t, err)
	// Without progress reports, the watch would have been restarted twice by then, and the context read again.
	eventually(t, "the cache does not confirm what it knows", func(ctx context.Context) error {
		last, asOf, err := cache.Snapshot(ctx, ac.ID())
		if err == nil && !last.Same(first) {
			t.Fatal("the context was read again")
		}
		if age := asOf.Sub(read); err == nil && age < 10*interval {
			return fmt.Errorf("it is as of %s after it was read", age)
		}
		return err
	})
}

func TestCacheAnswersWithAsOfDuringOutage(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: time.Second, ProgressInterval: 20 * time.Millisecond})
	ac, h := newContext(t, open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}}))
	cache := runCache(t, store, appcontext.CacheOptions{})
	begin := time.Now()
	read := func() (*appcontext.Snapshot, time.Time) {
		t.Helper()
		s, asOf, err := cache.Snapshot(t.Context(), ac.ID())
		if err != nil {
			t.Fatalf("Snapshot: %v", err)
		}
		return s, asOf
	}
	read()
	// The age stays small although nothing changes.
	eventually(t, "the answer grows old", func(context.Context) error {
		if _, asOf := read(); !asOf.After(begin.Add(200 * time.Millisecond)) {
			return fmt.Errorf("as of %s", asOf)
		}
		return nil
	})
	noError(t, etcd.Kill())
	killed := time.Now()
	if s, asOf := read(); len(contents(s)) == 0 || asOf.After(killed) {
		t.Errorf("want the last known context, as of before %s, got %d keys at %s", killed, len(contents(s)), asOf)
	}
	unknown := make(chan error, 1)
	go func() {
		_, _, err := cache.Snapshot(t.Context(), "4711")
		unknown <- err
	}()
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
	if _, asOf := read(); asOf.After(killed) {
		t.Errorf("the answer is as of %s, after %s", asOf, killed)
	}
	noError(t, etcd.Start(t.Context()))
	eventually(t, "nothing can be written", func(ctx context.Context) error { return just(ac.AddApp(ctx, h, "a")) })
	eventually(t, "the cache does not come back", func(context.Context) error {
		s, asOf := read()
		if _, ok := s.App("a"); !ok || !asOf.After(killed) {
			return fmt.Errorf("%d keys, as of %s", len(contents(s)), asOf)
		}
		return nil
	})
}

func TestIdleContextIsEvictedWhileOthersStay(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	const idle = time.Hour
	clock := clocktesting.NewFakeClock(time.Now())
	wanted, _ := newContext(t, store)
	other, _ := newContext(t, store)
	cache := runCache(t, store, appcontext.CacheOptions{Idle: idle, Clock: clock})
	// reads reports whether the cache reads a context from etcd.
	reads := func(ctx context.Context, ac *appcontext.AppContext) bool {
		before := metric(ctx, t, etcd.Endpoint(), ranges)
		if _, _, err := cache.Snapshot(ctx, ac.ID()); err != nil {
			t.Fatal(err)
		}
		return metric(ctx, t, etcd.Endpoint(), ranges) != before
	}
	if n := metric(t.Context(), t, etcd.Endpoint(), watchers); n != "0" {
		t.Errorf("nothing was asked for yet, but etcd has %s watchers", n)
	}
	if !reads(t.Context(), wanted) || !reads(t.Context(), other) {
		t.Fatal("etcd does not count what is read")
	}
	eventually(t, "the context that is not asked for is still held", func(ctx context.Context) error {
		for range 8 {
			clock.Step(idle / 4)
			if reads(ctx, wanted) {
				t.Fatal("the context that is asked for all the time was read again")
			}
		}
		if !reads(ctx, other) {
			return errors.New("it was not read again")
		}
		return nil
	})
}

// These are metrics of etcd: the number of watches, and the number of reads that it has served.
const (
	watchers = "etcd_debugging_mvcc_watcher_total"
	ranges   = "etcd_mvcc_range_total"
)

// metric returns the value of one of etcd's metrics.
func metric(ctx context.Context, t testing.TB, endpoint, name string) string {
	t.Helper()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/metrics", http.NoBody))(t)
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

func TestCacheEvictsBeyondMaxContexts(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
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
		if _, _, err := cache.Snapshot(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	reads := metric(t.Context(), t, etcd.Endpoint(), ranges)
	if _, _, err := cache.Snapshot(t.Context(), ids[19]); err != nil || metric(t.Context(), t, etcd.Endpoint(), ranges) != reads {
		t.Errorf("the context that was asked for last was read again: %v", err)
	}
	if _, _, err := cache.Snapshot(t.Context(), ids[0]); err != nil || metric(t.Context(), t, etcd.Endpoint(), ranges) == reads {
		t.Errorf("the context that was asked for longest ago is still held: %v", err)
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
	store := open(t, appcontext.Options{Timeout: 50 * time.Millisecond})
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	if _, _, err := cache.Snapshot(t.Context(), "1"); !errors.Is(err, appcontext.ErrUnavailable) {
		t.Errorf("want ErrUnavailable, got: %v", err)
	}
	wantError(t, just(cache.View(t.Context(), appcontext.ClusterRef("p", "a/b"), "")), appcontext.ErrInvalid)
	if _, _, err := cache.Snapshot(t.Context(), ""); !errors.Is(err, appcontext.ErrInvalid) {
		t.Errorf("want ErrInvalid, got: %v", err)
	}
}

func TestTheCacheLeavesNothingBehind(t *testing.T) {
	url := endpoint(t)
	before := goleak.IgnoreCurrent()
	store := must(appcontext.Open(appcontext.Options{Endpoints: []string{url}, ProgressInterval: 10 * time.Millisecond}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ac, _ := newContext(t, store)
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	if _, _, err := cache.Snapshot(ctx, ac.ID()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cache.Snapshot(ctx, "4711"); !errors.Is(err, appcontext.ErrNotFound) {
		t.Errorf("want ErrNotFound, got: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	closeStore(t, store)
	goleak.VerifyNone(t, before)
}
