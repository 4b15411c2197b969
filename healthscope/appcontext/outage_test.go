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

// scenario is a context with writers as untorn expects them.
type scenario struct {
	store   *appcontext.Store
	ac      *appcontext.AppContext
	subject appcontext.DeploymentRef
	root    appcontext.Handle
	cluster appcontext.Handle
}

func newScenario(t *testing.T, store *appcontext.Store) *scenario {
	t.Helper()
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	s := &scenario{store: store, ac: ac, subject: group(t)}
	s.root = must(ac.CreateCompositeApp(t.Context()))(t)
	_, s.cluster, _ = add(t, ac, s.root, "a", "p+c", "r+Kind")
	noError(t, errors.Join(s.act(t.Context(), 0), s.report(t.Context(), 0)))
	return s
}

func (s *scenario) record(n int64) appcontext.Record {
	return appcontext.Record{Subject: s.subject, Action: action(appcontext.ActionInstantiated, s.ac.ID(), n)}
}

// act writes the nth action.
func (s *scenario) act(ctx context.Context, n int64) error {
	return set(ctx, s.store, s.root, map[string]any{"status": state{strconv.FormatInt(n, 10)}}, s.record(n))
}

// report writes the nth bundle.
func (s *scenario) report(ctx context.Context, n int64) error {
	return set(ctx, s.store, s.cluster, map[string]any{"status": strconv.FormatInt(n, 10), "seen": n})
}

// crowd is a group of readers that read until they are stopped.
type crowd struct {
	wait   sync.WaitGroup
	cancel context.CancelFunc
	// views counts the views that were read, and failures the reads that failed because etcd was unavailable.
	views, failures atomic.Int64
}

// gather starts readers that read and check views.
func gather(t *testing.T, s *scenario, cache *appcontext.Cache) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{cancel: cancel}
	for n := range readers {
		read := s.store.View
		if n%2 == 0 {
			read = cache.View
		}
		c.wait.Go(func() {
			last := int64(0)
			pace := time.NewTicker(5 * time.Millisecond) // Reads from memory without a pause would leave no CPU time for the writers.
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				view, err := read(ctx, s.subject, "")
				switch {
				case errors.Is(err, appcontext.ErrUnavailable):
					c.failures.Add(1)
				case errors.Is(err, context.Canceled):
				case err != nil:
					t.Errorf("reader %d: %v", n, err)
					return
				default:
					c.views.Add(1)
					if err := untorn(view); err != nil {
						t.Errorf("reader %d: %v", n, err)
						return
					}
					if view.Revision < last {
						t.Errorf("reader %d goes back from revision %d to %d", n, last, view.Revision)
						return
					}
					last = view.Revision
				}
			}
		})
	}
	t.Cleanup(c.stop)
	return c
}

func (c *crowd) stop() {
	c.cancel()
	c.wait.Wait()
}

func TestReadersSeeOneRevision(t *testing.T) {
	store := open(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	s := newScenario(t, store)
	c := gather(t, s, runCache(t, store, appcontext.CacheOptions{}))
	var writers sync.WaitGroup
	for _, write := range []func(context.Context, int64) error{s.act, s.report} {
		writers.Go(func() {
			for n := range int64(100) {
				if err := write(t.Context(), n+1); err != nil {
					t.Errorf("write %d: %v", n+1, err)
				}
			}
		})
	}
	writers.Wait()
	c.stop()
	if c.views.Load() < readers || c.failures.Load() > 0 {
		t.Errorf("%d answers, %d failures", c.views.Load(), c.failures.Load())
	}
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
	client := rawClient(t, etcd.Endpoint())
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: time.Second, ProgressInterval: 20 * time.Millisecond})
	s := newScenario(t, store)
	cache := runCache(t, store, appcontext.CacheOptions{})
	c := gather(t, s, cache)
	const actions, outages = 120, 3
	var acknowledged, reported atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() { writeAll(t, s.act, actions, &acknowledged) })
	writer.Go(func() { writeAll(t, s.report, actions, &reported) })
	for n := range int64(outages) {
		eventually(t, "no action is acknowledged", func(context.Context) error {
			if acknowledged.Load() < (n+1)*actions/(outages+1) {
				return fmt.Errorf("%d are", acknowledged.Load())
			}
			return nil
		})
		noError(t, etcd.Kill())
		noError(t, etcd.Start(t.Context()))
		compact(t, client)
	}
	writer.Wait()
	// Whatever the cache has missed, it gets the last action without a request to do so.
	for name, read := range map[string]func(context.Context, appcontext.DeploymentRef, string) (appcontext.View, error){"store": store.View, "cache": cache.View} {
		eventually(t, "the "+name+" does not catch up", func(ctx context.Context) error {
			view, err := read(ctx, s.subject, "")
			if err != nil {
				return err
			}
			if got := view.Info.Actions[len(view.Info.Actions)-1].Revision; got != actions {
				return fmt.Errorf("the last action is %d", got)
			}
			return untorn(view)
		})
	}
	c.stop()
	info := must(store.GetStateInfo(t.Context(), s.subject))(t)
	if len(info.Actions) != actions+1 {
		t.Errorf("want %d actions, got %d", actions+1, len(info.Actions))
	}
	for n, a := range info.Actions {
		if a.Revision != int64(n) {
			t.Fatalf("action %d is recorded at place %d", a.Revision, n)
		}
	}
	if c.views.Load() == 0 {
		t.Error("no reader has read anything")
	}
}

func TestFullEtcdReturnsErrNoSpaceAndCanBeRead(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{Arguments: []string{"--quota-backend-bytes=4000000"}})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	ac, h := newContext(t, store)
	_, c, _ := add(t, ac, h, "a", "p+c", "r+Kind")
	var err error
	for n := 0; err == nil && n < 100; n++ {
		_, err = ac.AddResource(t.Context(), c, fmt.Sprintf("r%d+Kind", n), strings.Repeat("x", 200_000))
	}
	if !errors.Is(err, appcontext.ErrNoSpace) {
		t.Errorf("want ErrNoSpace, got: %v", err)
	}
	if s := must(store.Snapshot(t.Context(), ac.ID()))(t); len(contents(s)) < 4 {
		t.Errorf("want what there was, got %d keys", len(contents(s)))
	}
}
