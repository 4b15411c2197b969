package sync_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// limited returns a world with 200 documents, whose syncer deletes at most 20 percent of them at once.
func limited(t *testing.T) *world {
	t.Helper()
	w := start(t)
	w.restart(func(o *aaisync.Options) { o.Plan.Limit = plan.Limit{Percent: 20} })
	w.sync(many(200, "Ready")...)
	return w
}

// expectLeft runs a pass, and checks how many documents are left, and how many of them only because of the limit.
func (w *world) expectLeft(left, limited int, desired ...aai.Document) {
	w.t.Helper()
	r := w.sync(desired...)
	if n := len(w.stored()); n != left || len(r.Skipped) != limited || r.Synced != len(desired) {
		w.t.Errorf("%d are left, %d skipped, %d synced; want %d, %d and %d", n, len(r.Skipped), r.Synced, left, limited, len(desired))
	}
	for _, k := range r.Skipped {
		if k.Cause != plan.CauseLimit || !strings.Contains(k.Message, "40 of the 200") {
			w.t.Fatalf("skipped: %+v", k)
		}
	}
	if limited > 0 && r.NextPass.Sub(w.now) > aaisync.DeletionPause {
		w.t.Errorf("the rest is deleted at %s; it is %s", r.NextPass, w.now)
	}
}

func TestDeletionsAreLimited(t *testing.T) {
	w := limited(t)
	all := many(200, "Ready")
	w.expectLeft(199, 0, all[1:]...)
	w.advance(aaisync.DeletionPause - time.Second)
	w.expectLeft(160, 140, all[1:21]...)
	// The pause starts with the first deletion that is skipped.
	w.advance(time.Second)
	w.expectLeft(160, 140, all[1:21]...)
	w.advance(aaisync.DeletionPause - 2*time.Second)
	w.expectLeft(160, 140, all[1:21]...)
	w.advance(time.Second)
	w.expectLeft(120, 100, all[1:21]...)
	for _, n := range []int{80, 40, 20} {
		w.advance(aaisync.DeletionPause)
		w.expectLeft(n, n-20, all[1:21]...)
	}
	// A document that is desired again is not skipped any more.
	w.sync(all...)
	w.expectLeft(160, 140, all[:20]...)
	w.expectLeft(200, 0, all...)
}

func TestDeletionsOfRemovedClusterAreNotLimited(t *testing.T) {
	w := limited(t)
	if r := w.guarded(plan.Guards{Existing: []string{"edge", "core"}}); len(w.stored()) != 160 || len(r.Skipped) != 160 {
		t.Errorf("%d are left of a cluster that exists", len(w.stored()))
	}
	if r := w.guarded(plan.Guards{Existing: []string{"core"}}); len(w.stored()) != 0 || len(r.Skipped) != 0 {
		t.Errorf("%d are left of a cluster that was removed", len(w.stored()))
	}
}

func TestUpsertOnlyNeverDeletes(t *testing.T) {
	w := start(t)
	w.restart(func(o *aaisync.Options) { o.Plan.Policy = plan.UpsertOnly })
	w.sync(document("a", "Ready"), document("b", "Ready"))
	r := w.sync(document("a", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Failed"}, "b": {"hs/status=Ready"}})
	if len(r.Skipped) != 1 || r.Skipped[0].Key != key("b") || r.Skipped[0].Cause != plan.CausePolicy {
		t.Errorf("skipped: %+v", r.Skipped)
	}
}

// TestGuards holds two documents, and the deletions of the data-source of a third.
func TestGuards(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"), document("c", "Ready", func(d *aai.Document) { d.DataSource = "core" }))
	w.expect(nil, func() {
		r := w.guarded(plan.Guards{
			Keys:      map[aai.Key]bool{key("a"): true, key("b"): true, key("x"): true},
			Deletions: map[plan.Partition]string{{Source: "core"}: "it is truncated"},
		}, document("b", "Failed"), document("x", "Ready"))
		w.expectObjects(map[string]string{}, r)
		if len(r.Skipped) != 1 || r.Skipped[0].Key != key("c") || r.Skipped[0].Message != "it is truncated" {
			t.Errorf("skipped: %+v", r.Skipped)
		}
	})
	w.expect([]string{"GET c", "DELETE c"}, func() {
		w.guarded(plan.Guards{Deletions: map[plan.Partition]string{{Source: "edge"}: "it is truncated"}})
	})
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Ready"}})
	if r := w.sync(); len(r.Skipped) > 0 || len(w.stored()) > 0 {
		t.Errorf("skipped without a guard: %+v", r.Skipped)
	}
}

// TestGuardRemovedDuringPassIsObserved asserts that a pass deletes a document whose hold ends while the pass writes others. The
// next pass may be far away.
func TestGuardRemovedDuringPassIsObserved(t *testing.T) {
	w := start(t)
	w.sync(document("gone", "Ready"))
	held := aaisync.Change{Desired: desired(many(300, "Ready")...), Deletions: map[plan.Partition]string{{Source: "edge"}: "it is truncated"}}
	held.Desired[key("gone")] = aaisync.Desired{}
	r, err := w.syncer.Sync(t.Context(), tenant, func() aaisync.Change {
		defer func() { held = aaisync.Change{} }()
		return held
	})
	if _, left := w.stored()["gone"]; err != nil || left || len(r.Skipped) > 0 || r.Synced != 300 {
		t.Errorf("%d synced, skipped: %+v, %v", r.Synced, r.Skipped, err)
	}
}

// TestGuardRemovedFromDocumentThatIsDesiredAgain asserts that it is written once, although a pass learns at once that its cluster is complete
// and that it is desired.
func TestGuardRemovedFromDocumentThatIsDesiredAgain(t *testing.T) {
	w := start(t)
	w.sync(document("back", "Ready"))
	w.restart() // The list has its version.
	truncated := map[plan.Partition]string{{Source: "edge"}: "it is truncated"}
	before := desired(many(300, "Ready")...)
	before[key("back")] = aaisync.Desired{}
	var writing atomic.Bool
	w.intercept = func(r *http.Request) (*http.Response, error) {
		writing.Store(writing.Load() || isWrite(r))
		return passOn()
	}
	first, second := inTurn(before), inTurn(desired(document("back", "Failed")))
	got := writes(w.requests(func() {
		_, err := w.syncer.Sync(t.Context(), tenant, func() aaisync.Change {
			if writing.Load() {
				return second()
			}
			c := first()
			c.Deletions = truncated
			return c
		})
		if err != nil {
			t.Error(err)
		}
	}))
	if len(got) != 301 || got[300] != "UPDATE back" {
		t.Errorf("%d writes, want 301; the last are %q", len(got), got[300:])
	}
}
