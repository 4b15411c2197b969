package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// countEvents returns the number of events with a reason since the last call.
func (g *rig) countEvents(reason string) int {
	n := 0
	for {
		select {
		case event := <-g.events.Events:
			if strings.Contains(event, reason) {
				n++
			}
		default:
			return n
		}
	}
}

// pass advances the clock.
func (g *rig) pass(d time.Duration) { g.clock.SetTime(g.clock.Now().Add(d)) }

// overwrite changes the stored status as another client would, and sets the managed fields in the cache.
func (g *rig) overwrite(change func(*k8spluginv1alpha1.ResourceBundleState)) {
	g.t.Helper()
	g.stale = nil
	b := g.stored()
	change(b)
	entries := b.ManagedFields
	ctx, cancel := context.WithTimeout(g.t.Context(), writeTimeout)
	defer cancel()
	if err := g.api.Status().Update(ctx, b); err != nil {
		g.t.Fatal(err)
	}
	g.stale = g.stored()
	g.stale.ManagedFields = entries
}

func TestReconcileLeavesABundleToAnotherMonitorForAnHour(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.reconcile()
	g.wantWrites(1)
	began := g.clock.Now()
	emco := func(b *k8spluginv1alpha1.ResourceBundleState) {
		b.Status.Summary, b.Status.Resources = nil, nil
		b.ManagedFields = []metav1.ManagedFieldsEntry{writer("monitor", "status", g.clock.Now())}
	}
	g.overwrite(emco)
	for g.clock.Since(began) < time.Hour {
		g.writeStates.touch(sink) // Objects change, and the queue retries repeatedly.
		if result := g.reconcile(); result.RequeueAfter <= 0 || result.RequeueAfter > time.Hour {
			t.Fatalf("looked at again after %s, want within the hour", result.RequeueAfter)
		}
		if got := g.writeStates.standingDown(); got != 1 {
			t.Fatalf("%d bundles are left to others, want 1", got)
		}
		g.pass(time.Minute)
	}
	g.wantWrites(0)
	if got := g.countEvents(eventStandingDown); got != 1 {
		t.Errorf("%d events say so, want 1", got)
	}

	g.stale = nil // The fake client keeps no managed fields: the other monitor's write is an hour old.
	g.reconcile()
	g.wantWrites(1)
	if g.stored().Status.Summary == nil || g.writeStates.standingDown() != 0 {
		t.Errorf("after an hour the bundle is not taken over")
	}

	g.overwrite(emco)
	g.reconcile()
	g.wantWrites(0)
	if got := g.countEvents(eventStandingDown); got != 1 {
		t.Errorf("%d events say that the bundle is left alone again, want 1", got)
	}
}

func TestReconcileBacksOffFromSecondMonitor(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.reconcile()
	g.wantWrites(1)
	fight := func(hours int) int {
		for began := g.clock.Now(); g.clock.Since(began) < time.Duration(hours)*time.Hour; g.pass(5 * time.Second) {
			if g.stored().Status.ResourceCount == 1 {
				g.overwrite(func(b *k8spluginv1alpha1.ResourceBundleState) { b.Status.ResourceCount = 7 })
			}
			g.reconcile()
		}
		defer func() { g.writes = 0 }()
		return g.writes
	}
	if first := fight(1); first < 5 || first > 20 {
		t.Errorf("%d writes in the first hour of a conflict, want fewer and fewer", first)
	}
	if second := fight(1); second < 5 || second > 7 {
		t.Errorf("%d writes in the second hour, want one each ten minutes", second)
	}
	if got := g.countEvents(eventWriteConflict); got != 1 {
		t.Errorf("%d events about the conflict, want 1", got)
	}

	g.pass(time.Hour)
	g.reconcile()
	g.pass(time.Hour)
	g.writes = 0
	for range 2 {
		g.overwrite(func(b *k8spluginv1alpha1.ResourceBundleState) { b.Status.ResourceCount = 7 })
		if result := g.reconcile(); result.RequeueAfter != 0 {
			t.Errorf("after a quiet hour a status that somebody edits is taken back after %s, want at once", result.RequeueAfter)
		}
		g.wantWrites(1)
		g.pass(5 * time.Second)
	}
	if got := g.countEvents(eventStandingDown); got != 0 || g.stored().Status.ResourceCount != 1 {
		t.Errorf("%d events about another monitor and %d resources after an edit, want none and the one", got, g.stored().Status.ResourceCount)
	}
}

// TestReconcileBacksOffWhileObjectsChange has a second monitor that reverts each write, and objects that change every five seconds.
func TestReconcileBacksOffWhileObjectsChange(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	for i := range 720 {
		g.reconcile()
		if g.stored().Status.ResourceCount == 1 {
			g.overwrite(func(b *k8spluginv1alpha1.ResourceBundleState) { b.Status.ResourceCount = 7 })
		}
		g.pass(time.Second)
		g.reconcile()
		g.pass(4 * time.Second)
		g.change(object("ns", fmt.Sprint("object-", i), "1-sink", "1"))
	}
	if g.writes > 60 {
		t.Errorf("%d writes in an hour of a conflict, want fewer and fewer", g.writes)
	}
	if got := g.countEvents(eventWriteConflict); got != 1 {
		t.Errorf("%d events about the conflict, want 1", got)
	}
}

func TestReconcileStopsWhileTheCRDPrunes(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.prune = true
	g.change(object("ns", "a", "1-sink", "1"))
	for began := g.clock.Now(); g.clock.Since(began) < 10*time.Minute; g.pass(time.Second) {
		before := g.writes
		if result := g.reconcile(); result.RequeueAfter <= 0 && g.writes == before { // The watch returns the change of a write.
			t.Fatal("a bundle whose status is dropped is not looked at again")
		}
	}
	if g.writes < 19 || g.writes > 21 {
		t.Errorf("%d writes in ten minutes, want one each 30 seconds", g.writes)
	}
	if err := g.guard.Ready(); err == nil || !strings.Contains(err.Error(), "status.summary") {
		t.Errorf("readiness says %v, want what is dropped", err)
	}
	g.prune = false
	g.pass(30 * time.Second)
	g.reconcile()
	g.reconcile() // With the event of the watch for the write.
	if g.woken != 1 {
		t.Errorf("with the right CRD bundles are looked at again %d times, want once", g.woken)
	}
	if err := g.guard.Ready(); err != nil || g.stored().Status.Summary == nil {
		t.Errorf("with the right CRD readiness says %v and the summary is %v", err, g.stored().Status.Summary)
	}
}

func TestReconcileShowsWhatCannotBeReadAsUnknown(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.reconcile()
	g.unreadable = []schema.GroupKind{{Kind: "ConfigMap"}}
	g.change() // As after a start without the permission.
	g.reconcile()
	status := g.stored().Status
	if len(status.Resources) != 1 || status.Resources[0].State != "Unknown" || status.Ready {
		t.Errorf("resources are %+v, ready %t; want the ConfigMap as Unknown and not ready", status.Resources, status.Ready)
	}
	g.unreadable = nil
	g.pass(time.Second)
	g.change()
	g.reconcile()
	if got := g.stored().Status.Resources; len(got) != 0 {
		t.Errorf("resources are %+v after the kind can be read and has no objects, want none", got)
	}
}

// TestReconcileDoesNotLetConflictsStarveABundle checks that each change is written soon
// although three writes before it fail with a conflict.
func TestReconcileDoesNotLetConflictsStarveABundle(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "resourcebundlestates"}, sink.Name, errors.New("modified"))
	began := g.clock.Now()
	for i := range 40 {
		g.change(object("ns", fmt.Sprint("object-", i), "1-sink", "1"))
		for began := g.writes; g.stored().Status.Resources == nil || g.stored().Status.Resources[0].Name != fmt.Sprint("object-", i); {
			g.writeErr = nil
			if g.writes-began < 3 {
				g.writeErr = conflict
			}
			result := g.reconcile()
			g.pass(max(result.RequeueAfter, time.Millisecond))
		}
	}
	if took := g.clock.Since(began); took > 40*time.Second {
		t.Errorf("40 changes with three conflicts each took %s, want less than a second each", took)
	}
}

func TestReconcileToleratesClockJumps(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for i, jump := range []time.Duration{-time.Hour, time.Hour, -time.Hour, -24 * time.Hour, 48 * time.Hour} {
		for n := range 5 {
			g.change(object("ns", fmt.Sprint("object-", i, "-", n), "1-sink", "1"))
			g.reconcile()
		}
		if g.writes > writeBurst+1 {
			t.Errorf("%d writes at one moment, want at most %d", g.writes, writeBurst+1)
		}
		g.writes = 0
		g.pass(jump)
		g.change(object("ns", fmt.Sprint("last-", i), "1-sink", "1"))
		if wait := g.reconcile().RequeueAfter; wait > writeInterval {
			t.Errorf("after a jump of %s a change waits %s, want at most %s", jump, wait, writeInterval)
		}
		g.pass(writeInterval)
		g.reconcile()
		status := g.stored().Status
		if len(status.Resources) != 1 || status.Resources[0].Name != fmt.Sprint("last-", i) {
			t.Errorf("after a jump of %s the bundle has %+v, want the last change", jump, status.Resources)
		} else if since := status.Resources[0].Since; since.After(g.clock.Now()) {
			t.Errorf("after a jump of %s since is %s, which is to come", jump, since)
		}
		g.pass(time.Minute)
		g.writes = 0
	}
}

// TestPruned checks which missing fields count as pruned.
func TestPruned(t *testing.T) {
	t.Parallel()
	sent := bundle.Build([]*unstructured.Unstructured{object("ns", "a", "1-sink", "1")}, nil, time.Unix(1_000_000, 0), bundle.Options{})
	if what := pruned(&sent, sent.DeepCopy()); what != "" {
		t.Errorf("a status that was kept whole: %q", what)
	}
	for field, drop := range map[string]func(*k8spluginv1alpha1.ResourceBundleStateStatus){
		"status.summary":   func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Summary = nil },
		"status.resources": func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources = nil },
	} {
		kept := sent.DeepCopy()
		drop(kept)
		if what := pruned(&sent, kept); !strings.Contains(what, field) {
			t.Errorf("without %s: %q", field, what)
		}
	}
}
