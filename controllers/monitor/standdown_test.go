package monitor

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// writer returns an entry of managedFields as an API server creates it.
func writer(manager, subresource string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "k8splugin.io/v1alpha1", Subresource: subresource,
		Time: &metav1.Time{Time: at}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`),
	}
}

func TestStandDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	cases := map[string]struct {
		reason     string
		summary    bool
		entries    []metav1.ManagedFieldsEntry
		want       time.Duration
		wantWriter string
	}{
		"nobody": {reason: "A bundle that nobody has filled is ours to fill."},
		"rsync": {
			reason:  "Who made the bundle is not who fills it.",
			entries: []metav1.ManagedFieldsEntry{writer("rsync", "", ago(time.Second))},
		},
		"another monitor": {
			reason:  "For an hour after its last write.",
			entries: []metav1.ManagedFieldsEntry{writer("healthscope-monitor", "status", ago(time.Minute)), writer("monitor", "status", ago(10*time.Minute))},
			want:    50 * time.Minute, wantWriter: "monitor",
		},
		"a monitor that was removed": {
			reason:  "It is succeeded.",
			entries: []metav1.ManagedFieldsEntry{writer("monitor", "status", ago(time.Hour))},
		},
		"a person": {
			reason:  "Our summary is still there.",
			summary: true,
			entries: []metav1.ManagedFieldsEntry{writer("healthscope-monitor", "status", ago(time.Minute)), writer("kubectl-edit", "status", ago(time.Second))},
		},
		"the newest of several": {
			reason:  "Others wrote before it.",
			entries: []metav1.ManagedFieldsEntry{writer("new", "status", ago(time.Minute)), writer("old", "status", ago(50*time.Minute))},
			want:    59 * time.Minute, wantWriter: "new",
		},
		"a clock that is ahead": {
			reason:  "Nobody is left alone for longer than an hour.",
			entries: []metav1.ManagedFieldsEntry{writer("monitor", "status", now.Add(24*time.Hour))},
			want:    time.Hour, wantWriter: "monitor",
		},
		"a writer without a time": {
			reason:  "Nobody knows when it wrote.",
			entries: []metav1.ManagedFieldsEntry{{Manager: "monitor", Subresource: "status"}},
		},
		"our own": {
			reason:  "What we wrote is missing, and nobody else wrote: it is a matter of the CRD.",
			entries: []metav1.ManagedFieldsEntry{writer("healthscope-monitor", "status", ago(time.Minute))},
		},
	}
	for name, tc := range cases {
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}
		if tc.summary {
			b.Status.Summary = &k8spluginv1alpha1.ResourceCounts{}
		}
		if wait, who := (&coWriter{}).standDown(b, now); wait != tc.want || who != tc.wantWriter {
			t.Errorf("%s: %s Left to %q for %s, want %q for %s", name, tc.reason, who, wait, tc.wantWriter, tc.want)
		}
		if _, err := compress(b); err != nil {
			t.Errorf("%s: slim: %v", name, err)
		}
		if wait, who := (&coWriter{}).standDown(b, now); wait != tc.want || who != tc.wantWriter {
			t.Errorf("%s: after the cache's transformation left to %q for %s, want %q for %s", name, who, wait, tc.wantWriter, tc.want)
		}
	}
}

// TestTakesOverFromMonitorWithClockAhead has another monitor that writes once while the clock of its node is two days ahead.
func TestTakesOverFromMonitorWithClockAhead(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.stale = g.stored()
	g.stale.ManagedFields = []metav1.ManagedFieldsEntry{writer("monitor", "status", g.clock.Now().Add(48*time.Hour))}
	for began := g.clock.Now(); g.writes == 0; {
		if left := g.clock.Since(began); left > 2*time.Hour {
			t.Fatalf("the bundle is still left alone after %s", left)
		}
		g.pass(max(g.reconcile().RequeueAfter, time.Second))
	}
}
