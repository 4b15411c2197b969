package appcontext_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestSnapshotOfLevelsHasOnlyThese(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	add(t, ac, h, "a", "p+c", "r+Kind")
	noError(t, set(t.Context(), store, h, map[string]any{"status": "s", "rsync/state/CurrentState": "c"}))
	s := must(store.Snapshot(t.Context(), ac.ID(), "rsync/state/CurrentState", "meta"))(t)
	want := map[string]string{string(h): `"` + ac.ID() + `"`, string(h) + "rsync/state/CurrentState/": `"c"`}
	if diff := cmp.Diff(want, contents(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	putRaw(t, rawClient(t, endpoint(t)), map[string]string{"/context/4799/status/": `"s"`})
	if _, err := store.Snapshot(t.Context(), "4799", "status"); !errors.Is(err, appcontext.ErrNotFound) {
		t.Errorf("without the context itself, want ErrNotFound, got: %v", err)
	}
}

func TestWritesDependOnTheLevelsThatWereRead(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	read := must(store.Snapshot(t.Context(), ac.ID(), "one", "two"))(t)
	condition := appcontext.Condition{Unchanged: []*appcontext.Snapshot{read}, Levels: []string{"one", "two"}}
	write := func(id string) error {
		return store.WriteLevels(t.Context(), id, []appcontext.Write{{Handle: h.Level("three"), Value: 3}}, condition)
	}
	noError(t, write(ac.ID()))
	noError(t, set(t.Context(), store, h, map[string]any{"two": 2}))
	for id, want := range map[string]string{ac.ID(): fmt.Sprintf("cannot write to context %q: ", ac.ID()), "": "cannot write to etcd: "} {
		if err := write(id); !errors.Is(err, appcontext.ErrConflict) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want ErrConflict after %q, got: %v", want, err)
		}
	}
}

func TestBundlesAreReportedFromARevisionOn(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	_, c, _ := add(t, ac, h, "a", "p+c", "r+Kind")
	type report struct {
		place    appcontext.AppInCluster
		revision int64
	}
	reports := make(chan report)
	save := func() int64 {
		noError(t, set(t.Context(), store, c, map[string]any{"status": "{}"}))
		s := must(store.Snapshot(t.Context(), ac.ID()))(t)
		return s.StoredRevision(c.Level("status"))
	}
	follow := func(after int64) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- store.WatchBundles(ctx, ac.ID(), after, func(p appcontext.AppInCluster, revision int64) { reports <- report{p, revision} })
		}()
		return func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("WatchBundles: %v", err)
			}
		}
	}
	expect := func(revision int64) {
		t.Helper()
		want := report{appcontext.AppInCluster{ContextID: ac.ID(), App: "a", Cluster: "p+c"}, revision}
		if got := <-reports; got != want {
			t.Errorf("want %+v, got %+v", want, got)
		}
	}
	first := save()
	stop := follow(0)
	expect(first)
	second := save()
	expect(second)
	stop()
	stop = follow(second)
	expect(save()) // The second bundle is not reported again.
	stop()
	stop = follow(1 << 40) // The revision is later than that of etcd, as after a restore from a backup.
	<-reports
	stop()
}

func TestActiveContextsAreReported(t *testing.T) {
	etcd := rawClient(t, endpoint(t))
	store := open(t, appcontext.Options{})
	ac, _ := newContext(t, store)
	active := string(appcontext.ActiveHandle(ac.ID()))
	putRaw(t, etcd, map[string]string{active: `"` + ac.ID() + `"`})
	ctx, cancel := context.WithCancel(t.Context())
	ids, ended := make(chan string), make(chan error, 1)
	go func() {
		ended <- store.WatchActive(ctx, func(id string) {
			select {
			case ids <- id:
			case <-ctx.Done():
			}
		})
	}()
	for range 2 { // once when the watch begins, and once when the key is written again
		for id := range ids {
			if id == ac.ID() {
				break
			}
		}
		putRaw(t, etcd, map[string]string{active: `"` + ac.ID() + `"`})
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("WatchActive: %v", err)
	}
}
