package sync_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

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
	var lists, others int
	takes := 10 * time.Second
	w.observe = func(r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
		case isList(r):
			lists++
			w.now = w.now.Add(takes)
		default:
			others++
		}
	}
	if r := w.sync(many(60, "Ready")...); r.Synced != 60 || lists != 1 || others > 0 {
		t.Errorf("%d synced after %d lists and %d other reads", r.Synced, lists, others)
	}
	takes, lists = 2*aaisync.DefaultResync, 0
	w.advance(aaisync.DefaultResync)
	for range 3 {
		w.sync(many(60, "Ready")...)
	}
	if lists != 1 {
		t.Errorf("%d lists in a row of a tenant that takes longer to list than it may be old", lists)
	}
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
		var writes, lists int
		w.observe = func(r *http.Request) {
			switch {
			case isWrite(r):
				writes++
			case isList(r):
				lists++
			}
		}
		passes := 0
		for synced := 0; synced < objects; passes++ {
			r, err := w.trySync(many(objects, "Ready")...)
			if err != nil || r.Synced <= synced {
				t.Fatalf("pass %d: %d synced after %d, %v", passes, r.Synced, synced, err)
			}
			if synced = r.Synced; synced < objects && r.NextPass.After(w.clock()) {
				t.Errorf("%d of %d objects are written, and the next pass is to begin at %s, want now", synced, objects, r.NextPass)
			}
		}
		if want := objects / 30; passes < 2 || writes != want || lists != 1 {
			t.Errorf("%d passes with %d requests to write and %d lists; want more than one, %d, so that nothing is written twice, and 1", passes, writes, lists, want)
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

// TestChangesDuringUnplannedListAreReported lists a tenant because this is cheaper than to read each document that changes.
func TestChangesDuringUnplannedListAreReported(t *testing.T) {
	w := start(t)
	w.sync(many(60, "Pending")...)
	w.advance(time.Minute)
	r, err := w.syncer.Sync(t.Context(), tenant, inTurn(desired(many(60, "Ready")...), desired(document("new", "Ready"))))
	if err != nil || r.Synced != 61 || r.Changed[key("new")].State != aaisync.Synced {
		t.Errorf("%v; %d synced, and what is new is reported as %+v", err, r.Synced, r.Changed[key("new")])
	}
}
