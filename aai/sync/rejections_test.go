package sync_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
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
	w.expectSync(nil, many(90, "Ready")...)
}

func TestRejectedObjectIsSentAgainWhenItChanges(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	w.advance(time.Second)
	w.refuseWrites("a", http.StatusBadRequest)
	b := document("b", "Failed")
	rejected := map[string]string{"a": "Failed Rejected", "b": "Synced"}
	r := w.expectSync([]string{"GET", "UPDATE b"}, document("a", "Failed"), b)
	w.expectObjects(rejected, r)
	if !strings.Contains(r.Objects[key("a")].Message, "status 400") {
		t.Errorf("message is %q", r.Objects[key("a")].Message)
	}
	w.expectObjects(rejected, w.expectSync(nil, document("a", "Failed"), b))
	w.syncer.Resync(tenant)
	w.faults(simulator.Fault{Status: http.StatusBadGateway, Count: 1})
	r, err := w.trySync(document("a", "Unknown"), b)
	expectKind(t, err, aai.Retry)
	w.expectObjects(map[string]string{"a": "Pending NotTried", "b": "Synced"}, r)
	if w.sync(document("a", "Pending"), b); w.written[len(w.written)-1].Key != key("a") {
		t.Error("what has changed is not tried")
	}
	w.intercept = nil
	w.expectSync(nil, document("a", "Pending"), b)
	w.advance(aaisync.DefaultResync)
	r = w.expectSync([]string{"GET", "UPDATE a"}, document("a", "Pending"), b)
	w.expectObjects(map[string]string{"a": "Synced", "b": "Synced"}, r)
}

func TestRejectedDeletion(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.faults(simulator.Fault{Method: http.MethodDelete, Status: http.StatusBadRequest})
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, w.expectSync([]string{"GET a", "DELETE a"}))
	w.expectSync(nil)
	w.ClearFaults()
	w.syncer.Resync(tenant)
	w.expectSync([]string{"GET", "DELETE a"})
}

// TestFailingObjectDoesNotStarveOthers has an object for which every write fails with a temporary error.
func TestFailingObjectDoesNotStarveOthers(t *testing.T) {
	w := start(t)
	w.sync(document("x", "Ready"))
	w.refuseWrites("007", http.StatusInternalServerError)
	all := append(many(20, "Ready"), document("x", "Ready"))
	var r outcome
	for range 6 { // The requests have 20, 10, 5 and 2 objects, until the failing object is alone.
		var err error
		r, err = w.trySync(all...)
		expectKind(t, err, aai.Retry)
	}
	if r.Synced != 20 || r.Objects[key("007")].Reason != aaisync.ReasonUnavailable {
		t.Errorf("%d synced: %+v", r.Synced, r.Objects[key("007")])
	}
	// From now on, it has no effect on others.
	all = append(all, many(30, "Ready")[20:]...)
	got := w.requests(func() { _, _ = w.trySync(all...) })
	if n := len(writes(got)); n != 10 || len(sent(got)) != 2 {
		t.Errorf("%q; want the bad one read, and 10 created together", got)
	}
	w.intercept = nil
	if r = w.sync(all...); r.Synced != 31 {
		t.Errorf("%d synced", r.Synced)
	}
}
