package pruning_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/controllers/pruning"
)

// noon is the time of the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const problem = "the CRD prunes status.summary"

func TestAllowDoesNotWaitWhileWritesAreKept(t *testing.T) {
	t.Parallel()
	g := pruning.NewGuard("HealthScopes")
	for range 3 {
		if wait := g.Allow(noon); wait != 0 {
			t.Errorf("want no wait, got %s", wait)
		}
		if g.Kept() {
			t.Error("want no change while writes are kept")
		}
	}
	if err := g.Ready(); err != nil {
		t.Error(err)
	}
}

func TestAllowOnceInEveryIntervalWhilePruned(t *testing.T) {
	t.Parallel()
	g := pruning.NewGuard("HealthScopes")
	g.Pruned(noon, problem)
	cases := []struct {
		after, want time.Duration
	}{
		{0, 30 * time.Second},
		{10 * time.Second, 20 * time.Second},
		{30 * time.Second, 0},
		{30 * time.Second, 30 * time.Second},
		{45 * time.Second, 15 * time.Second},
		{90 * time.Second, 0},
		// The clock is set back by an hour, and then forward again.
		{-time.Hour, 0},
		{-time.Hour + time.Second, 29 * time.Second},
		{91 * time.Second, 0},
	}
	for i, c := range cases {
		if got := g.Allow(noon.Add(c.after)); got != c.want {
			t.Errorf("step %d: after %s Allow returns %s, want %s", i, c.after, got, c.want)
		}
	}
}

func TestPrunedAndIntactReportOnlyChanges(t *testing.T) {
	t.Parallel()
	g := pruning.NewGuard("HealthScopes")
	if !g.Pruned(noon, problem) || g.Pruned(noon.Add(time.Minute), problem) {
		t.Error("want a change for the first pruned write only")
	}
	if !g.Pruned(noon, "the API server does not serve it") {
		t.Error("want a change for another problem")
	}
	if !g.Kept() || g.Kept() {
		t.Error("want a change for the first write that is kept only")
	}
	if wait := g.Allow(noon); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
}

func TestReadyNamesTheProblemAndTheFix(t *testing.T) {
	t.Parallel()
	g := pruning.NewGuard("HealthScopes")
	g.Pruned(noon, problem)
	err := g.Ready()
	if err == nil {
		t.Fatal("want an error")
	}
	for _, part := range []string{"HealthScopes", problem, "config/crd"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	g.Kept()
	if err := g.Ready(); err != nil {
		t.Error(err)
	}
}

func TestAllowAdmitsOneOfManyConcurrentCallers(t *testing.T) {
	t.Parallel()
	g := pruning.NewGuard("HealthScopes")
	g.Pruned(noon, problem)
	var allowed atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if g.Allow(noon.Add(time.Minute)) == 0 {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if got := allowed.Load(); got != 1 {
		t.Errorf("%d callers may write, want 1", got)
	}
}
