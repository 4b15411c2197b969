package sync_test

import (
	"fmt"
	"net/http"
	"strconv"
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
	var r outcome
	w.expect([]string{"GET", "GET tenant", "BULK 2", "+ PUT a", "+ PUT b"}, func() { r = w.sync(document("a", "Ready"), document("b", "Pending")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Pending"}})
	w.expectObjects(map[string]string{"a": "Synced", "b": "Synced"}, r)
	if diff := cmp.Diff(map[aai.Key]time.Time{key("a"): w.now, key("b"): w.now}, r.Acknowledged); diff != "" {
		t.Errorf("acknowledged, -want +got:\n%s", diff)
	}

	w.expect(nil, func() { r = w.sync(document("a", "Ready"), document("b", "Pending")) })
	if len(r.Acknowledged) != 0 {
		t.Errorf("a pass without requests acknowledged %v", acknowledged(r))
	}

	w.expect([]string{"GET b", "UPDATE b"}, func() { r = w.sync(document("a", "Ready"), document("b", "Failed")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Failed"}})
	if diff := cmp.Diff([]string{"b"}, acknowledged(r)); diff != "" {
		t.Errorf("acknowledged, -want +got:\n%s", diff)
	}

	// A&AI sends no version of b after the update, so that it must be read before the deletion.
	w.expect([]string{"GET b", "DELETE b"}, func() { r = w.sync(document("a", "Ready")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}})
	w.expectObjects(map[string]string{"a": "Synced"}, r)
	w.expect(nil, func() { w.sync(document("a", "Ready")) })
}

func TestAfterARestart(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"), document("c", "Ready"))
	w.restart()
	w.expect([]string{"GET"}, func() { w.sync(document("a", "Ready"), document("b", "Ready"), document("c", "Ready")) })
	w.restart()
	// Meanwhile b was deleted and c failed. The list had all versions.
	w.expect([]string{"GET", "BULK 2", "+ DELETE b", "+ UPDATE c"}, func() { w.sync(document("a", "Ready"), document("c", "Failed")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "c": {"hs/status=Failed"}})
	// The version of c is not known any more.
	w.expect([]string{"GET c", "DELETE c"}, func() { w.sync(document("a", "Ready")) })
}

func TestResync(t *testing.T) {
	w := start(t)
	r := w.sync(document("a", "Ready"), document("b", "Ready"))
	if want := w.now.Add(aaisync.DefaultResync); !r.NextPass.Equal(want) {
		t.Errorf("next pass at %s, want %s", r.NextPass, want)
	}
	w.advance(aaisync.DefaultResync - time.Second)
	w.expect(nil, func() { w.sync(document("a", "Ready"), document("b", "Ready")) })
	w.advance(time.Second)
	w.expect([]string{"GET"}, func() { w.sync(document("a", "Ready"), document("b", "Ready")) })
	w.expect(nil, func() { w.sync(document("a", "Ready"), document("b", "Ready")) })
	w.syncer.Resync(tenant)
	w.expect([]string{"GET"}, func() { w.sync(document("a", "Ready"), document("b", "Ready")) })
}

func TestDriftIsRepaired(t *testing.T) {
	w := start(t)
	desired := []aai.Document{document("a", "Ready"), document("b", "Ready"), document("c", "Ready"), document("d", "Ready", linked("vnf-1"))}
	w.sync(desired...)
	w.others(http.MethodPatch, key("a").Path(), `{"labels":["hs/status=Failed","team=red"],"selflink":"http://elsewhere"}`)
	w.othersDelete("b")
	w.others(http.MethodPatch, key("c").Path(), `{"labels":["hs/status=Ready","team=red"]}`)
	w.others(http.MethodDelete, key("d").Path()+"/relationship-list/relationship", `{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-1"}`)
	w.syncer.Resync(tenant)
	w.expect([]string{"GET", "BULK 3", "+ UPDATE a", "+ PUT b", "+ PUT d edge"}, func() { w.sync(desired...) })
	w.expectStored(map[string][]string{
		"a": {"hs/status=Ready", "team=red"}, "b": {"hs/status=Ready"}, "c": {"hs/status=Ready", "team=red"},
		"d": {"-> vnf-1", "hs/link=/network/generic-vnfs/generic-vnf/vnf-1", "hs/status=Ready"},
	})
	if a, _ := w.Get(key("a").Path()); a["selflink"] != "http://x" {
		t.Errorf("selflink of a is %v", a["selflink"])
	}
	w.expect(nil, func() { w.sync(desired...) })
}

func TestLabelsThatOthersAddedSinceTheLastListSurvive(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.advance(time.Minute)
	w.others(http.MethodPatch, key("a").Path(), `{"labels":["hs/status=Ready","team=red"]}`)
	w.expect([]string{"GET a", "UPDATE a"}, func() { w.sync(document("a", "Failed")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Failed", "team=red"}})
	w.advance(600 * time.Millisecond)
	w.others(http.MethodPatch, key("a").Path(), `{"labels":["hs/status=Failed","team=red","site=north"]}`)
	w.expect([]string{"GET a", "UPDATE a"}, func() { w.sync(document("a", "Ready")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready", "site=north", "team=red"}})
}

// TestALabelThatIsSetWhileWeWriteSurvives asserts that A&AI rejects our write if a third party changes the document between our
// read and our write.
func TestALabelThatIsSetWhileWeWriteSurvives(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	arrived := 0
	w.arrive = func() {
		if arrived++; arrived == 2 { // The first request is the read.
			if err := w.Act(simulator.Action{Action: "patch", URI: key("a").Path(), Body: map[string]any{"labels": []string{"hs/status=Ready", "team=red"}}}); err != nil {
				t.Error(err)
			}
		}
	}
	w.expect([]string{"GET a", "UPDATE a", "GET a", "UPDATE a"}, func() { w.sync(document("a", "Failed")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Failed", "team=red"}})
}

func TestManyOldDocumentsAreReadByList(t *testing.T) {
	w := start(t)
	of := func(status string) (list []aai.Document) {
		for i := range 150 {
			list = append(list, document(strconv.Itoa(i), status))
		}
		return list
	}
	w.sync(of("Ready")...)
	w.advance(time.Minute)
	requests := w.requests(func() { w.sync(of("Failed")...) })
	if n := len(sent(requests)); n != 2+5 || requests[0] != "GET" || requests[1] != "GET" || len(writes(requests)) != 150 {
		t.Errorf("%d requests, %d writes; want two pages of a list and 150 updates in 5 requests", n, len(writes(requests)))
	}
	w.advance(aaisync.DefaultResync - time.Minute)
	w.expect([]string{"GET", "GET"}, func() { w.sync(of("Failed")...) })
}

func TestDocumentsOfOtherOwnersAreConflicts(t *testing.T) {
	foreign := func(id, dataOwner string) simulator.Fixture {
		return simulator.Fixture{URI: key(id).Path(), Body: map[string]any{
			"id": id, "name": "x", "group": "", "version": "v1", "kind": "Service", "namespace": "", "selflink": "s", "data-owner": dataOwner, "labels": []string{"their=own"},
		}}
	}
	w := start(t, append(everything(), foreign("theirs", "CnfAdapter"), foreign("taken", "CnfAdapter"), foreign("without-owner", ""))...)
	before := map[string]any{}
	for _, id := range []string{"theirs", "taken", "without-owner"} {
		before[id], _ = w.Get(key(id).Path())
	}
	r := w.sync(document("a", "Ready"), document("taken", "Ready"))
	w.expectObjects(map[string]string{"a": "Synced", "taken": "Failed Conflict"}, r)
	w.expect(nil, func() { w.sync(document("a", "Ready"), document("taken", "Failed")) })
	w.syncer.Resync(tenant)
	w.sync()
	for id, want := range before {
		got, _ := w.Get(key(id).Path())
		if diff := cmp.Diff(want, any(got)); diff != "" {
			t.Errorf("%q was touched:\n%s", id, diff)
		}
	}
	if got := len(w.stored()); got != len(before) {
		t.Errorf("%d documents are left, want those of others", got)
	}
}

func TestGuardedKeysAreNotTouched(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"), document("c", "Ready", func(d *aai.Document) { d.DataSource = "core" }))
	pass := func(h plan.Guards, desired ...aai.Document) outcome {
		r, err := w.pass(t.Context(), documents(desired...), h)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	w.expect(nil, func() {
		r := pass(plan.Guards{Keys: map[aai.Key]bool{key("a"): true, key("b"): true, key("x"): true}, Deletions: map[plan.Partition]string{{Source: "core"}: "lost"}},
			document("b", "Failed"), document("x", "Ready"))
		w.expectObjects(map[string]string{}, r)
	})
	w.expect([]string{"GET c", "DELETE c"}, func() { pass(plan.Guards{Deletions: map[plan.Partition]string{{Source: "edge"}: "lost"}}) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Ready"}})
}

func TestRelationships(t *testing.T) {
	claim := func(vnf string) string { return "hs/link=/network/generic-vnfs/generic-vnf/" + vnf }
	w := start(t)
	w.expect([]string{"GET", "PUT a"}, func() { w.sync(document("a", "Ready", linked("vnf-1"))) })
	w.expectStored(map[string][]string{"a": {"-> vnf-1", claim("vnf-1"), "hs/status=Ready"}})
	w.expect(nil, func() { w.sync(document("a", "Ready", linked("vnf-1"))) })
	// The claim on vnf-1 is dropped when the relationship is gone.
	w.expect([]string{"GET a", "UPDATE a", "DELETE a edge", "PUT a edge", "GET a", "UPDATE a"}, func() { w.sync(document("a", "Ready", linked("vnf-2"))) })
	w.expectStored(map[string][]string{"a": {"-> vnf-2", claim("vnf-2"), "hs/status=Ready"}})
	w.restart()
	w.expect([]string{"GET", "DELETE a edge", "GET a", "UPDATE a"}, func() { w.sync(document("a", "Ready")) })
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}})
	w.others(http.MethodPut, key("a").Path()+"/relationship-list/relationship", `{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-1"}`)
	w.syncer.Resync(tenant)
	w.expect([]string{"GET"}, func() { w.sync(document("a", "Ready")) })
	w.expectStored(map[string][]string{"a": {"-> vnf-1", "hs/status=Ready"}})
}

// TestDocumentTakenOverByAnotherOwnerIsNotTouched asserts that the syncer notices another owner of a document before it writes.
func TestDocumentTakenOverByAnotherOwnerIsNotTouched(t *testing.T) {
	linkedBefore := document("a", "Ready", linked("vnf-1"))
	claimed := document("a", "Ready", func(d *aai.Document) { d.Labels = linkedBefore.Labels })
	cases := map[string]struct{ before, after aai.Document }{
		"a field":              {document("a", "Ready"), document("a", "Ready", func(d *aai.Document) { d.Version = "v2" })},
		"a label":              {document("a", "Ready"), document("a", "Failed")},
		"a relationship":       {claimed, linkedBefore},
		"a relationship fewer": {linkedBefore, claimed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(c.before)
			w.advance(6 * time.Second)
			w.othersDelete("a")
			w.others(http.MethodPut, key("a").Path(), `{"name":"x","group":"","version":"v1","kind":"Pod","namespace":"","selflink":"s","data-owner":"CnfAdapter"}`)
			want, _ := w.Get(key("a").Path())
			w.expect([]string{"GET a"}, func() { w.expectObjects(map[string]string{"a": "Failed Conflict"}, w.sync(c.after)) })
			got, _ := w.Get(key("a").Path())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it was touched:\n%s", diff)
			}
		})
	}
}

func TestSyncRefusesDocumentsOfOtherTenantsOrOwners(t *testing.T) {
	w := start(t)
	cases := map[string]map[aai.Key]aai.Document{
		"of another tenant": {{Tenant: aai.Tenant{TenantID: "x"}, ID: "a"}: document("a", "Ready")},
		"with another id":   {key("b"): document("a", "Ready")},
		"of another owner":  {key("a"): document("a", "Ready", func(d *aai.Document) { d.DataOwner = "x" })},
	}
	for name, desired := range cases {
		t.Run(name, func(t *testing.T) {
			w.expect(nil, func() {
				if _, err := w.pass(t.Context(), desired, plan.Guards{}); err == nil {
					t.Error("no error")
				}
			})
		})
	}
}

// TestConcurrentPasses runs passes of several callers in parallel, for the race detector.
func TestConcurrentPasses(t *testing.T) {
	w := start(t, append(everything(), simulator.Tenant("o", "r", "t2"))...)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
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
		})
	}
	group.Wait()
}
