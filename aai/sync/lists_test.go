package sync_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestIncompleteListIsReadAgain has an A&AI that wrongly responds that a page of a list does not exist, so that all objects from
// this page on are missing. The tenant is read again after the first response that one of them exists.
func TestIncompleteListIsReadAgain(t *testing.T) {
	cases := map[string]struct{ objects, pages, missing int }{
		"the third of ten": {999, 10, 3},
		"the last of many": {1599, 16, 16},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			w := start(t)
			w.sync(many(tc.objects, "Ready")...)
			w.restart()
			w.faults(simulator.Fault{Method: http.MethodGet, Path: "/aai/v32" + tenant.ResourcesPath(), Code: "AAI_6114", Skip: tc.missing - 1, Count: 1})
			var r outcome
			requests := w.requests(func() { r = w.sync(many(tc.objects, "Ready")...) })
			// These are the list up to the missing page, the check whether the tenant exists, the creations in parallel, and the
			// complete list.
			if n := len(sent(requests)); n > tc.missing+1+aaisync.Parallelism+tc.pages {
				t.Errorf("%d requests", n)
			}
			if r.Synced != tc.objects {
				t.Errorf("%d synced", r.Synced)
			}
			w.expectSync(nil, many(tc.objects, "Ready")...)
		})
	}
}

// TestSlowListIsReadOnce has an A&AI that needs longer for a list than what is known of a document remains valid.
func TestSlowListIsReadOnce(t *testing.T) {
	w := start(t)
	w.sync(many(60, "Pending")...)
	w.advance(time.Minute)
	takes := 10 * time.Second
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if isList(r) {
			w.advance(takes)
		}
		return passOn()
	}
	requests := sent(w.requests(func() { w.sync(many(60, "Ready")...) }))
	slices.Sort(requests)
	if diff := cmp.Diff([]string{"BULK 30", "BULK 30", "GET"}, requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	takes = 2 * aaisync.DefaultResync // Longer than what is known may be old.
	w.advance(aaisync.DefaultResync)
	w.expectSync([]string{"GET"}, many(60, "Ready")...)
	w.expectSync(nil, many(60, "Ready")...)
}

// TestWriteTimeExcludesListing has a tenant whose list takes longer than the write time.
func TestWriteTimeExcludesListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writeTime = 2 * time.Second
		w := start(t)
		all := many(300, "Ready")
		w.sync(all...)
		w.restart(func(o *aaisync.Options) { o.WriteTime = writeTime })
		w.slow(writeTime/2, isList)
		began := time.Now()
		all = append(all, document("late", "Ready"))
		if r := w.sync(all...); r.Synced != 301 || time.Since(began) < writeTime {
			t.Errorf("%d synced in %s", r.Synced, time.Since(began))
		}
		w.slow(time.Hour, isWrite)
		if _, err := w.trySync(append(all, document("later", "Ready"))...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that never ends: %v", err)
		}
	})
}

// TestExceededWriteTimeIsNoError has more writes than fit into the write time of a pass. A&AI is slow, but has no error.
func TestExceededWriteTimeIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 1800
		w := start(t)
		w.restart(func(o *aaisync.Options) { o.WriteTime = 4 * time.Second })
		w.slow(300*time.Millisecond, isWrite)
		passes := 0
		requests := sent(w.requests(func() {
			for synced := 0; synced < objects; passes++ {
				r, err := w.trySync(many(objects, "Ready")...)
				if err != nil || r.Synced <= synced {
					t.Fatalf("pass %d: %d synced after %d, %v", passes, r.Synced, synced, err)
				}
				if synced = r.Synced; synced < objects && r.NextPass.After(w.clock()) {
					t.Errorf("%d of %d objects are written, and the next pass is to begin at %s, want now", synced, objects, r.NextPass)
				}
			}
		}))
		slices.Sort(requests)
		// Nothing is written twice, and the tenant is not read again.
		if diff := cmp.Diff(append(slices.Repeat([]string{"BULK 30"}, objects/30), "GET", "GET tenant"), requests); diff != "" || passes < 2 {
			t.Errorf("%d passes; -want +got:\n%s", passes, diff)
		}
	})
}

// TestChangesDuringListAreApplied makes changes while a tenant is listed: one resource is desired again, one is held, and one is
// new.
func TestChangesDuringListAreApplied(t *testing.T) {
	w := start(t)
	w.sync(document("back", "Ready"), document("held", "Ready"), document("gone", "Ready"))
	w.advance(aaisync.DefaultResync)
	during := desired(document("back", "Pending"), document("new", "Ready"))
	during[key("held")] = aaisync.Desired{Held: true}
	changes := inTurn(map[aai.Key]aaisync.Desired{key("back"): {}, key("held"): {}, key("gone"): {}}, during)
	r, err := w.syncer.Sync(t.Context(), tenant, changes)
	if err != nil || len(r.Acknowledged) != 3 || r.Changed[key("new")].State != aaisync.Synced || len(changes().Desired) != 0 {
		t.Errorf("%v, acknowledged %v, changed %v", err, r.Acknowledged, r.Changed)
	}
	w.expectStored(map[string][]string{"back": {"hs/status=Pending"}, "held": {"hs/status=Ready"}, "new": {"hs/status=Ready"}})
	asked := 0
	w.expect(nil, func() {
		_, _ = w.syncer.Sync(t.Context(), tenant, func() aaisync.Change { asked++; return aaisync.Change{} })
	})
	if asked != 1 {
		t.Errorf("asked for changes %d times", asked)
	}
}

// TestFailureDuringListIsReported relates a resource to a VNF that does not exist, while its tenant is listed.
func TestFailureDuringListIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.sync(document("a", "Ready"))
		w.syncer.Resync(tenant)
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if isList(r) {
				w.syncer.Wake(tenant)
				<-time.After(time.Second)
			}
			return passOn()
		}
		r, err := w.syncer.Sync(t.Context(), tenant, inTurn(nil, desired(document("a", "Failed", linked("vnf-9")))))
		if o := r.Changed[key("a")]; err != nil || o.Reason != aaisync.ReasonMissingDependency {
			t.Errorf("got %+v, %v", o, err)
		}
	})
}

// TestResyncDuringListIsNotLost requests a resync while a tenant is listed, of which A&AI has returned a part already.
func TestResyncDuringListIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.sync(document("a", "Ready"))
		w.syncer.Resync(tenant)
		lists := 0
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return passOn()
			}
			if lists++; lists == 1 {
				w.syncer.Resync(tenant)
				w.syncer.Wake(tenant)
				<-time.After(time.Second)
			}
			return passOn()
		}
		for _, changes := range []func() aaisync.Change{inTurn(nil, desired(document("a", "Failed"))), inTurn(nil)} {
			if _, err := w.syncer.Sync(t.Context(), tenant, changes); err != nil {
				t.Fatal(err)
			}
		}
		if lists != 2 {
			t.Errorf("the tenant was listed %d times, want once for each request", lists)
		}
	})
}
