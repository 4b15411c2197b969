package sync_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

func TestBulkLimitOfServerIsLearnt(t *testing.T) {
	w := start(t)
	w.simulate(simulator.Options{BulkLimit: 7}, everything()...)
	if r := w.sync(many(60, "Ready")...); r.Synced != 60 {
		t.Errorf("%d synced", r.Synced)
	}
	// Now the limit is known.
	requests := sent(w.requests(func() { w.sync(many(60, "Failed")...) }))
	slices.Sort(requests)
	if diff := cmp.Diff(append(append([]string{"BULK 4"}, slices.Repeat([]string{"BULK 7"}, 8)...), "GET"), requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRejectedObjectDoesNotBlockItsBatch(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{Method: http.MethodPost, BodyContains: `/k8s-resource/017"`, Code: "AAI_6137"}, simulator.Fault{PathPrefix: "/aai/v32" + key("017").Path(), Code: "AAI_6137"})
	var r outcome
	requests := sent(w.requests(func() { r = w.sync(many(90, "Ready")...) }))
	if r.Synced != 89 || r.Failed != 1 || r.Objects[key("017")].Reason != aaisync.ReasonRejected || len(w.stored()) != 89 {
		t.Errorf("%d synced, %+v", r.Synced, r.Objects[key("017")])
	}
	if len(requests) > 2+3+2*6 {
		t.Errorf("%d requests: %q", len(requests), requests)
	}
	w.expect(nil, func() { w.sync(many(90, "Ready")...) })
}

func TestDeletionsAreLimited(t *testing.T) {
	w := start(t)
	w.plan.Limit = plan.Limit{Percent: 20}
	w.restart()
	all := many(200, "Ready")
	w.sync(all...)
	left := func(want, skipped int) {
		t.Helper()
		r := w.sync(all[:20]...)
		if n := len(w.stored()); n != want || len(r.Skipped) != skipped {
			t.Errorf("%d are left, %d held; want %d and %d", n, len(r.Skipped), want, skipped)
		}
		for _, k := range r.Skipped {
			if k.Cause != plan.CauseLimit || !strings.Contains(k.Message, "40 of the 200") {
				t.Fatalf("skipped: %+v", k)
			}
		}
		if skipped > 0 && r.NextPass.Sub(w.now) > aaisync.DeletionPause {
			t.Errorf("the rest goes at %s; it is %s", r.NextPass, w.now)
		}
	}
	left(160, 140)
	left(160, 140)
	w.advance(aaisync.DeletionPause - time.Second)
	left(160, 140)
	w.advance(time.Second)
	left(120, 100)
	for _, n := range []int{80, 40, 20} {
		w.advance(aaisync.DeletionPause)
		left(n, n-20)
	}
	// A document that is desired again is not among the held deletions.
	all = many(200, "Ready")
	w.sync(all...)
	left(160, 140)
	if r := w.sync(all...); len(r.Skipped) > 0 || r.Synced != 200 {
		t.Errorf("%d held, %d synced", len(r.Skipped), r.Synced)
	}
}

// TestDeletionPauseStartsAtFirstLimitedDeletion asserts that the deletion pause starts with the first limited deletion, and not
// with an earlier deletion that is not limited.
func TestDeletionPauseStartsAtFirstLimitedDeletion(t *testing.T) {
	w := start(t)
	w.plan.Limit = plan.Limit{Percent: 20}
	w.restart()
	all := many(200, "Ready")
	w.sync(all...)
	left := func(want int) {
		t.Helper()
		if n := len(w.stored()); n != want {
			t.Errorf("%d are left, want %d", n, want)
		}
	}
	w.sync(all[1:]...)
	left(199)
	w.advance(aaisync.DeletionPause - time.Second)
	w.sync()
	left(160)
	w.advance(time.Second)
	w.sync()
	left(160)
	w.advance(aaisync.DeletionPause - time.Second)
	w.sync()
	left(120)
}

func TestDeletionsOfRemovedClusterAreNotLimited(t *testing.T) {
	w := start(t)
	w.plan.Limit = plan.Limit{Percent: 20}
	w.restart()
	w.sync(many(200, "Ready")...)
	r, err := w.pass(t.Context(), nil, plan.Guards{Existing: []string{"edge", "core"}})
	if err != nil || len(w.stored()) != 160 || len(r.Skipped) != 160 {
		t.Errorf("%d are left of a cluster that exists, %v", len(w.stored()), err)
	}
	r, err = w.pass(t.Context(), nil, plan.Guards{Existing: []string{"core"}})
	if err != nil || len(w.stored()) != 0 || len(r.Skipped) != 0 {
		t.Errorf("%d are left of a cluster that was removed, %v", len(w.stored()), err)
	}
}

func TestUpsertOnlyNeverDeletes(t *testing.T) {
	w := start(t)
	w.plan.Policy = plan.UpsertOnly
	w.restart()
	w.sync(document("a", "Ready"), document("b", "Ready"))
	r := w.sync(document("a", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Failed"}, "b": {"hs/status=Ready"}})
	if len(r.Skipped) != 1 || r.Skipped[0].Key != key("b") || r.Skipped[0].Cause != plan.CausePolicy {
		t.Errorf("skipped: %+v", r.Skipped)
	}
}

func TestHeldDeletionsRunAfterGuardIsRemoved(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	r, err := w.pass(t.Context(), documents(document("a", "Ready")), plan.Guards{Deletions: map[plan.Partition]string{{Source: "edge"}: "it is truncated"}})
	if err != nil || len(r.Skipped) != 1 || r.Skipped[0].Message != "it is truncated" || r.Synced != 1 || r.Pending != 0 {
		t.Errorf("%+v, %v", r.Report, err)
	}
	if r = w.sync(document("a", "Ready")); len(r.Skipped) > 0 {
		t.Errorf("skipped: %+v", r.Skipped)
	}
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}})
}

// TestGuardRemovedDuringPassIsObserved asserts that a pass deletes a document whose hold ends while the pass writes others. The
// next pass may be far away.
func TestGuardRemovedDuringPassIsObserved(t *testing.T) {
	w := start(t)
	w.sync(document("gone", "Ready"))
	desired := map[aai.Key]aaisync.Desired{key("gone"): {}}
	for k, d := range documents(many(300, "Ready")...) {
		desired[k] = aaisync.Desired{Document: &d}
	}
	held := aaisync.Change{Desired: desired, Deletions: map[plan.Partition]string{{Source: "edge"}: "it is truncated"}}
	r, err := w.syncer.Sync(t.Context(), tenant, func() aaisync.Change {
		defer func() { held = aaisync.Change{} }()
		return held
	})
	if _, left := w.stored()["gone"]; err != nil || left || len(r.Skipped) > 0 || r.Synced != 300 {
		t.Errorf("%d synced, skipped: %+v, %v", r.Synced, r.Skipped, err)
	}
}

// TestLag asserts that the lag starts with the oldest change that A&AI does not have.
func TestLag(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.faults(simulator.Fault{Status: http.StatusServiceUnavailable})
	for _, status := range []string{"Failed", "Pending", "Failed"} {
		r, _ := w.trySync(document("a", status))
		if len(r.Lags) > 0 {
			t.Errorf("lags %v of what was not written", r.Lags)
		}
		w.advance(10 * time.Second)
	}
	w.ClearFaults()
	r := w.sync(document("a", "Failed"))
	if diff := cmp.Diff([]time.Duration{30 * time.Second}, r.Lags); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r = w.sync(document("a", "Failed")); len(r.Lags) > 0 {
		t.Errorf("lags %v of what has not changed", r.Lags)
	}
}

// TestLagIncludesWaitForDependency asserts that the lag includes the time for which a document is held or waits for a missing
// object.
func TestLagIncludesWaitForDependency(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"))
	w.sync(document("a", "Ready"))
	held := plan.Guards{Keys: map[aai.Key]bool{key("a"): true}}
	for range 2 {
		if r, err := w.pass(t.Context(), documents(document("a", "Failed"), document("b", "Ready", linked("vnf-1"))), held); err != nil || len(r.Lags) > 0 {
			t.Errorf("lags %v of what was not written, %v", r.Lags, err)
		}
		w.advance(aaisync.DependencyInterval)
	}
	w.seed(simulator.GenericVNF("vnf-1"))
	r := w.sync(document("a", "Failed"), document("b", "Ready", linked("vnf-1")))
	if diff := cmp.Diff([]time.Duration{time.Minute, time.Minute}, r.Lags); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEveryWriteIsAudited(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	w.sync(document("a", "Failed"), document("b", "Ready"))
	w.faults(simulator.Fault{Method: http.MethodDelete, Status: http.StatusBadRequest})
	w.sync(document("a", "Failed"))
	ids := map[string]bool{}
	for _, r := range w.Requests() {
		if r.Method != http.MethodGet {
			ids[r.Header.Get("X-TransactionId")] = true
		}
	}
	var got []string
	for _, o := range w.written {
		if !ids[o.TransactionID] {
			t.Errorf("no request had the transaction id of %+v", o)
		}
		got = append(got, fmt.Sprintf("%s %s %v %t", o.Verb, o.Resource.Name, o.Labels, o.Err == nil))
	}
	want := []string{"Create n-a [hs/status=Ready] true", "Create n-b [hs/status=Ready] true", "Update n-a [hs/status=Failed] true", "Delete n-b [] false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w.written[0].TransactionID != w.written[1].TransactionID || len(ids) != 3 {
		t.Errorf("transaction ids: %v", ids)
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
		case strings.HasSuffix(r.URL.Path, "/k8s-resources"):
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
		w := start(t)
		w.sync(many(300, "Ready")...)
		const writeTime = 2 * time.Second
		w.restart()
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Clock: w.clock, Plan: w.plan, Audit: w.audit, WriteTime: writeTime})
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/k8s-resources") {
				<-time.After(writeTime / 2)
			}
			return nil, nil //nolint:nilnil // A&AI answers.
		}
		began := time.Now()
		if r := w.sync(append(many(300, "Ready"), document("late", "Ready"))...); r.Synced != 301 || time.Since(began) < writeTime {
			t.Errorf("%d synced in %s", r.Synced, time.Since(began))
		}
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return nil, nil //nolint:nilnil // A&AI answers.
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		if _, err := w.trySync(append(many(300, "Ready"), document("late", "Ready"), document("later", "Ready"))...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that never ends: %v", err)
		}
	})
}

// TestExceededWriteTimeIsNoError has more writes than fit into the write time of a pass. A&AI is slow, but has no error.
func TestExceededWriteTimeIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		const objects, writeTime = 1800, 4 * time.Second
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Clock: w.clock, Plan: w.plan, Audit: w.audit, WriteTime: writeTime})
		var writes, lists int
		w.observe = func(r *http.Request) {
			switch {
			case r.Method != http.MethodGet:
				writes++
			case strings.HasSuffix(r.URL.Path, "/k8s-resources"):
				lists++
			}
		}
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				<-time.After(300 * time.Millisecond)
			}
			return nil, nil //nolint:nilnil // A&AI answers.
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

// TestChangesDuringListAreApplied asserts that changes during the list of a tenant are applied: one resource is desired again,
// and one deletion is held.
func TestChangesDuringListAreApplied(t *testing.T) {
	w := start(t)
	w.sync(document("back", "Ready"), document("held", "Ready"), document("gone", "Ready"))
	w.advance(aaisync.DefaultResync)
	again := document("back", "Pending")
	changes := inTurn(
		map[aai.Key]aaisync.Desired{key("back"): {}, key("held"): {}, key("gone"): {}},
		map[aai.Key]aaisync.Desired{key("back"): {Document: &again}, key("held"): {Held: true}},
	)
	r, err := w.syncer.Sync(t.Context(), tenant, changes)
	if err != nil || len(r.Acknowledged) != 2 || len(changes().Desired) != 0 {
		t.Errorf("%v, and %d documents written", err, len(r.Acknowledged))
	}
	var left []string
	for k := range w.stored() {
		left = append(left, fmt.Sprint(k))
	}
	if len(left) != 2 {
		t.Errorf("left are %q; want what is back and what is held", left)
	}
	asked := 0
	if len(w.requests(func() {
		_, _ = w.syncer.Sync(t.Context(), tenant, func() aaisync.Change { asked++; return aaisync.Change{} })
	})) > 0 || asked != 1 {
		t.Errorf("a tenant that took long to read is read again at once; asked for changes %d times", asked)
	}
}

// inTurn returns a function that returns the changes one after the other, and then none.
func inTurn(changes ...map[aai.Key]aaisync.Desired) func() aaisync.Change {
	return func() aaisync.Change {
		if len(changes) == 0 {
			return aaisync.Change{}
		}
		next := changes[0]
		changes = changes[1:]
		return aaisync.Change{Desired: next}
	}
}

// TestChangesDuringListAreReported asserts that the report contains a resource that is created while the tenant is listed. The
// syncer lists the tenant because this is cheaper than to read each document that changes.
func TestChangesDuringListAreReported(t *testing.T) {
	w := start(t)
	w.sync(many(60, "Pending")...)
	w.advance(time.Minute)
	desired := map[aai.Key]aaisync.Desired{}
	for k, d := range documents(many(60, "Ready")...) {
		desired[k] = aaisync.Desired{Document: &d}
	}
	come := document("come", "Ready")
	r, err := w.syncer.Sync(t.Context(), tenant, inTurn(desired, map[aai.Key]aaisync.Desired{key("come"): {Document: &come}}))
	if err != nil || r.Synced != 61 || r.Changed[key("come")].State != aaisync.Synced {
		t.Errorf("%v; %d synced, and what has come is reported as %+v", err, r.Synced, r.Changed[key("come")])
	}
}

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
			w.expect(nil, func() { w.sync(many(tc.objects, "Ready")...) })
		})
	}
}
