package appcontext_test

import (
	"context"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// follow runs a watch, which sends on a channel, until the test calls the function that it returns.
func follow(t *testing.T, watch func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch(ctx) }()
	return func() {
		t.Helper()
		cancel()
		wantError(t, <-ended, context.Canceled)
	}
}

func TestBundlesAreReportedFromARevisionOn(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	type report struct {
		place    appcontext.AppInCluster
		revision int64
	}
	reports := make(chan report, 10)
	save := func() int64 {
		noError(t, set(t.Context(), f.store, f.c, map[string]any{"status": "{}", "readystatus": "Available"}))
		return f.snapshot(t).Apps()[0].Clusters()[1].Revision("status")
	}
	after := func(revision int64) (stop func()) {
		return follow(t, func(ctx context.Context) error {
			return f.store.WatchBundles(ctx, f.ac.ID(), revision, func(p appcontext.AppInCluster, revision int64) { reports <- report{p, revision} })
		})
	}
	expect := func(revision int64) {
		t.Helper()
		if got, want := receive(t, reports), (report{f.place, revision}); got != want {
			t.Errorf("want %+v, got %+v", want, got)
		}
	}
	other := must(f.ac.AddCluster(t.Context(), f.a, "p+b"))(t)
	noError(t, set(t.Context(), f.store, other, map[string]any{"status": "{}"}))
	first := save()
	stop := after(0)
	receive(t, reports) // that of the other cluster
	expect(first)
	second := save()
	expect(second)
	stop()
	stop = after(second)
	expect(save()) // What was reported is not reported again.
	stop()
	stop = after(1 << 40) // The revision is later than that of etcd, as after a restore from a backup.
	receive(t, reports)
	receive(t, reports)
	stop()
	wantError(t, f.store.WatchBundles(t.Context(), "1/2", 0, nil), appcontext.ErrInvalid)
}

func TestActiveContextsAreReported(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	activate := func() {
		putRaw(t, f.client, map[string]string{string(appcontext.ActiveHandle(f.ac.ID())): `"` + f.ac.ID() + `"`})
	}
	ids := make(chan string)
	activate()
	stop := follow(t, func(ctx context.Context) error {
		return f.store.WatchActive(ctx, func(id string) {
			select {
			case ids <- id:
			case <-ctx.Done():
			}
		})
	})
	for range 2 { // once when the watch begins, and once when the key is written again
		for receive(t, ids) != f.ac.ID() {
		}
		activate()
	}
	stop()
}

func TestChangesOfLevelsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		levels []string
		write  map[string]any
	}{
		"of some levels":     {[]string{"y", "b"}, map[string]any{"b": 1}},
		"of the last level":  {[]string{"b", "y"}, map[string]any{"y": 1}},
		"anywhere":           {nil, map[string]any{"n": 1}},
		"a level is removed": {[]string{"x"}, map[string]any{"x": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, appcontext.Options{})
			noError(t, set(t.Context(), f.store, f.h, map[string]any{"x": 0}))
			changes := make(chan bool, 10)
			stop := follow(t, func(ctx context.Context) error {
				return f.store.WatchLevels(ctx, f.ac.ID(), tc.levels, func() { changes <- true })
			})
			receive(t, changes) // as soon as it watches
			if len(tc.levels) > 1 {
				noError(t, set(t.Context(), f.store, f.h, map[string]any{"c": 1})) // It is between the levels.
			}
			noError(t, set(t.Context(), f.store, f.h, tc.write))
			receive(t, changes)
			stop()
			if len(changes) > 0 {
				t.Error("another level is reported")
			}
		})
	}
}
