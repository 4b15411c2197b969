package sync_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

func TestCreateChangeDelete(t *testing.T) {
	w := start(t)
	a, b := document("a", "Ready"), document("b", "Pending")
	r := w.expectSync([]string{"GET", "GET tenant", "BULK 2", "+ PUT a", "+ PUT b"}, a, b)
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Pending"}})
	w.expectObjects(map[string]string{"a": "Synced", "b": "Synced"}, r)
	if diff := cmp.Diff(map[aai.Key]time.Time{key("a"): w.now, key("b"): w.now}, r.Acknowledged); diff != "" {
		t.Errorf("acknowledged, -want +got:\n%s", diff)
	}

	if r = w.expectSync(nil, a, b); len(r.Acknowledged) != 0 {
		t.Errorf("a pass without requests acknowledged %v", r.Acknowledged)
	}

	r = w.expectSync([]string{"GET b", "UPDATE b"}, a, document("b", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Failed"}})
	if _, written := r.Acknowledged[key("b")]; !written || len(r.Acknowledged) != 1 {
		t.Errorf("acknowledged %v, want b", r.Acknowledged)
	}

	// A&AI sends no version of b after the update, so that it must be read before the deletion.
	r = w.expectSync([]string{"GET b", "DELETE b"}, a)
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}})
	w.expectObjects(map[string]string{"a": "Synced"}, r)
	w.expectSync(nil, a)
}

// TestListAfterRestart asserts that a syncer lists a tenant once when it starts. The list has all versions.
func TestListAfterRestart(t *testing.T) {
	w := start(t)
	all := []aai.Document{document("a", "Ready"), document("b", "Ready"), document("c", "Ready")}
	w.sync(all...)
	w.restart()
	w.expectSync([]string{"GET"}, all...)
	w.expectSync([]string{"BULK 2", "+ DELETE b", "+ UPDATE c"}, all[0], document("c", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "c": {"hs/status=Failed"}})
}

func TestRelationships(t *testing.T) {
	claim := func(vnf string) string { return "hs/link=/network/generic-vnfs/generic-vnf/" + vnf }
	w := start(t)
	w.expectSync([]string{"GET", "PUT a"}, document("a", "Ready", linked("vnf-1")))
	w.expectStored(map[string][]string{"a": {"-> vnf-1", claim("vnf-1"), "hs/status=Ready"}})
	w.expectSync(nil, document("a", "Ready", linked("vnf-1")))
	// The claim on vnf-1 is dropped when the relationship is gone.
	w.expectSync([]string{"GET a", "UPDATE a", "DELETE a edge", "PUT a edge", "GET a", "UPDATE a"}, document("a", "Ready", linked("vnf-2")))
	w.expectStored(map[string][]string{"a": {"-> vnf-2", claim("vnf-2"), "hs/status=Ready"}})
	w.restart()
	w.expectSync([]string{"GET", "DELETE a edge", "GET a", "UPDATE a"}, document("a", "Ready"))
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}})
	w.others("put", edgeOf("a"), edgeTo("vnf-1"))
	w.syncer.Resync(tenant)
	w.expectSync([]string{"GET"}, document("a", "Ready"))
	w.expectStored(map[string][]string{"a": {"-> vnf-1", "hs/status=Ready"}})
}

func TestResync(t *testing.T) {
	w := start(t)
	a := document("a", "Ready")
	r := w.sync(a)
	if want := w.now.Add(aaisync.DefaultResync); !r.NextPass.Equal(want) {
		t.Errorf("next pass at %s, want %s", r.NextPass, want)
	}
	w.advance(aaisync.DefaultResync - time.Second)
	w.expectSync(nil, a)
	w.advance(time.Second)
	w.expectSync([]string{"GET"}, a)
	w.expectSync(nil, a)
	// A requested resync survives an outage.
	w.others("delete", key("a").Path(), nil)
	w.syncer.Resync(tenant)
	w.faults(simulator.Fault{Status: http.StatusBadGateway, Count: 1})
	if _, err := w.trySync(a); err == nil {
		t.Error("no error")
	}
	w.expectSync([]string{"GET", "PUT a"}, a)
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

// TestLag asserts that the lag starts with the oldest change that A&AI does not have. It includes the time for which a document
// is held, waits for a missing object, or cannot be written.
func TestLag(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"))
	w.sync(document("a", "Ready"), document("held", "Ready"))
	w.faults(simulator.Fault{Method: http.MethodPut, PathPrefix: "/aai/v32" + key("a").Path(), Status: http.StatusInternalServerError})
	held := plan.Guards{Keys: map[aai.Key]bool{key("held"): true}}
	desired := func(a string) []aai.Document {
		return []aai.Document{document("a", a), document("held", "Failed"), document("waits", "Ready", linked("vnf-1"))}
	}
	for _, status := range []string{"Failed", "Pending", "Failed"} {
		if r, _ := w.pass(t.Context(), documents(desired(status)...), held); len(r.Lags) > 0 {
			t.Errorf("lags %v of what was not written", r.Lags)
		}
		w.advance(10 * time.Second)
	}
	w.ClearFaults()
	w.seed(simulator.GenericVNF("vnf-1"))
	for _, want := range [][]time.Duration{slices.Repeat([]time.Duration{30 * time.Second}, 3), nil} {
		if diff := cmp.Diff(want, w.sync(desired("Failed")...).Lags); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestSyncRefusesDocumentsOfOtherTenantsOrOwners(t *testing.T) {
	cases := map[string]map[aai.Key]aai.Document{
		`document "a" is of tenant "//x"`:                          {{Tenant: aai.Tenant{TenantID: "x"}, ID: "a"}: document("a", "Ready")},
		`document "b" has the id "a"`:                              {key("b"): document("a", "Ready")},
		`document "a" has the data-owner "x", not "` + owner + `"`: {key("a"): document("a", "Ready", func(d *aai.Document) { d.DataOwner = "x" })},
	}
	for want, desired := range cases {
		w := start(t)
		w.expect(nil, func() {
			if _, err := w.pass(t.Context(), desired, plan.Guards{}); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestConcurrentPasses runs passes of several callers in parallel, for the race detector. They send one probe, before anything else.
func TestConcurrentPasses(t *testing.T) {
	w := start(t, append(everything(), simulator.Tenant("o", "r", "t2"))...)
	var group sync.WaitGroup
	pass := func(i int) {
		at := aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: []string{"t", "t2"}[i%2]}
		desired := map[aai.Key]aaisync.Desired{}
		for n := range 20 {
			d := document(fmt.Sprintf("%s-%d", at.TenantID, n), []string{"Ready", "Failed"}[i/2%2])
			desired[aai.Key{Tenant: at, ID: d.ID}] = aaisync.Desired{Document: &d}
		}
		if r, err := w.syncer.Sync(t.Context(), at, inTurn(desired)); err != nil || r.Synced != 20 {
			t.Errorf("%d synced, %v", r.Synced, err)
		}
		w.syncer.Resync(at)
	}
	n := w.probes(func() {
		for i := range 10 {
			group.Go(func() { pass(i) })
		}
		group.Wait()
	})
	if first := w.Requests()[0]; n != 1 || !isProbe(first) {
		t.Errorf("%d probes; the first request is %s %s", n, first.Method, first.Path)
	}
}
