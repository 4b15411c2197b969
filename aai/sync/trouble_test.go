package sync_test

import (
	"errors"
	"fmt"
	"io"
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

// answer returns a response that replaces the response of A&AI.
func answer(status int, header http.Header, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

// many returns n documents.
func many(n int, status string, changes ...func(*aai.Document)) (list []aai.Document) {
	for i := range n {
		list = append(list, document(fmt.Sprintf("%03d", i), status, changes...))
	}
	return list
}

// failure returns err as an *aai.Error, and checks that it has the kind and names the tenant.
func failure(t *testing.T, err error, kind aai.ErrorKind) *aai.Error {
	t.Helper()
	e, ok := errors.AsType[*aai.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(err.Error(), `tenant "o/r/t"`) {
		t.Fatalf("got %v, want an error of kind %s about the tenant", err, kind)
	}
	return e
}

// expectKind checks that err is an *aai.Error of the kind.
func expectKind(t *testing.T, err error, kind aai.ErrorKind) {
	t.Helper()
	_ = failure(t, err, kind)
}

func TestMissingTenantIsRetried(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"))
	desired := many(100, "Ready")
	var r outcome
	if n := len(w.requests(func() { r = w.sync(desired...) })); n > 1+aaisync.Parallelism {
		t.Errorf("%d requests for 100 objects without a tenant", n)
	}
	if r.Pending != 100 || r.Objects[key("099")].Reason != aaisync.ReasonMissingDependency || !strings.Contains(r.Objects[key("099")].Message, "tenant") {
		t.Errorf("%d pending, the last: %+v", r.Pending, r.Objects[key("099")])
	}
	if want := w.now.Add(aaisync.DependencyInterval); !r.NextPass.Equal(want) {
		t.Errorf("next pass at %s, want %s", r.NextPass, want)
	}
	w.seed(simulator.Tenant("o", "r", "t"))
	w.advance(aaisync.DependencyInterval - time.Second)
	w.expect(nil, func() { w.sync(desired...) })
	w.advance(time.Second)
	if r = w.sync(desired...); r.Synced != 100 || len(w.stored()) != 100 {
		t.Errorf("%d synced, %d stored", r.Synced, len(w.stored()))
	}
	w.expect(nil, func() { w.sync(desired...) })
}

func TestForgetEndsTheWait(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"))
	w.sync(document("a", "Ready"))
	w.seed(simulator.Tenant("o", "r", "t"))
	w.syncer.Resync(tenant)
	w.expect([]string{"GET", "PUT a"}, func() { w.sync(document("a", "Ready")) })
}

func TestVNFMissing(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"))
	w.sync(document("000", "Ready"))
	linkedDocuments := many(50, "Failed", linked("vnf-1"))
	var r outcome
	requests := w.requests(func() { r = w.sync(linkedDocuments...) })
	if n := len(sent(requests)); n > 10 {
		t.Errorf("%d requests: %v", n, requests)
	}
	// The state of a document that exists does not wait for its VNF.
	w.expectStored(map[string][]string{"000": {"hs/link=/network/generic-vnfs/generic-vnf/vnf-1", "hs/status=Failed"}})
	if want := `generic-vnf "vnf-1" does not exist in A&AI`; r.Missing != aai.ProblemVNF || !strings.Contains(r.Objects[key("000")].Message, want) || !strings.Contains(r.Objects[key("049")].Message, want) {
		t.Errorf("missing is %q: %+v", r.Missing, r.Objects[key("000")])
	}
	if r.Pending != 50 || r.Objects[key("000")].Reason != aaisync.ReasonMissingDependency || r.Objects[key("049")].Reason != aaisync.ReasonMissingDependency {
		t.Errorf("%d pending: %+v, %+v", r.Pending, r.Objects[key("000")], r.Objects[key("049")])
	}
	// A change of state is written meanwhile.
	w.expect([]string{"GET 000", "UPDATE 000"}, func() {
		w.sync(append(many(50, "Failed", linked("vnf-1"))[1:], document("000", "Ready", linked("vnf-1")))...)
	})
	// One document checks whether the VNF exists now. The others wait for it.
	w.advance(aaisync.DependencyInterval)
	if again := w.requests(func() { w.sync(linkedDocuments...) }); len(writes(again)) != 2 {
		t.Errorf("%q were sent; want the state of 000, and one that finds out", again)
	}
	w.seed(simulator.GenericVNF("vnf-1"))
	w.advance(aaisync.DependencyInterval)
	if r = w.sync(linkedDocuments...); r.Synced != 50 {
		t.Errorf("%d synced", r.Synced)
	}
	for id, labels := range w.stored() {
		if !slices.Contains(labels, "-> vnf-1") {
			t.Errorf("%q is not related: %v", id, labels)
		}
	}
}

// TestManyDocumentsThatWaitForOneVNF asserts that one document checks whether a VNF exists now, for all documents that need it.
// The others are not even read before that.
func TestManyDocumentsThatWaitForOneVNF(t *testing.T) {
	w := start(t)
	w.sync(many(50, "Ready")...)
	related := many(50, "Ready", linked("vnf-9"))
	if r := w.sync(related...); r.Pending != 50 {
		t.Fatalf("%d pending", r.Pending)
	}
	w.advance(aaisync.DependencyInterval)
	w.expect([]string{"GET 000", "PUT 000 edge"}, func() { w.sync(related...) })
	w.seed(simulator.GenericVNF("vnf-9"))
	w.advance(aaisync.DependencyInterval)
	if r := w.sync(related...); r.Synced != 50 {
		t.Errorf("%d synced", r.Synced)
	}
}

func TestDocumentsThatOthersChanged(t *testing.T) {
	touch := `{"labels":["hs/status=Ready","team=red"]}`
	cases := map[string]struct {
		others  func(w *world)
		desired []aai.Document
		want    []string
		stored  map[string][]string
	}{
		"changed before our deletion": {
			others: func(w *world) { w.others(http.MethodPatch, key("a").Path(), touch) },
			want:   []string{"DELETE a", "GET a", "DELETE a"},
			stored: map[string][]string{},
		},
		"deleted before our deletion": {
			others: func(w *world) { w.othersDelete("a") },
			want:   []string{"DELETE a", "GET a"},
			stored: map[string][]string{},
		},
		"deleted before our change": {
			others:  func(w *world) { w.othersDelete("a") },
			desired: []aai.Document{document("a", "Failed")},
			want:    []string{"UPDATE a", "GET a", "PUT a"},
			stored:  map[string][]string{"a": {"hs/status=Failed"}},
		},
		"deleted before our relationship": {
			others:  func(w *world) { w.othersDelete("a") },
			desired: []aai.Document{document("a", "Ready", linked("vnf-1"), func(d *aai.Document) { d.Labels = d.Labels[:1] })},
			want:    []string{"GET a", "PUT a"},
			stored:  map[string][]string{"a": {"-> vnf-1", "hs/status=Ready"}},
		},
		"created before our creation": {
			others: func(w *world) {
				w.others(http.MethodPut, key("b").Path(), `{"id":"b","name":"n-b","group":"","version":"v1","kind":"Service","namespace":"ns","selflink":"http://x","data-owner":"`+owner+`","data-source":"edge","labels":["hs/status=Pending"]}`)
			},
			desired: []aai.Document{document("a", "Ready"), document("b", "Ready")},
			want:    []string{"PUT b", "GET b", "UPDATE b"},
			stored:  map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Ready"}},
		},
		"taken over before our deletion": {
			others: func(w *world) { w.others(http.MethodPatch, key("a").Path(), `{"data-owner":"CnfAdapter"}`) },
			want:   []string{"DELETE a", "GET a"},
			stored: map[string][]string{"a": {"hs/status=Ready"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(document("a", "Ready"))
			w.restart()
			w.sync(document("a", "Ready")) // now the version is known
			w.advance(time.Second)
			c.others(w)
			w.expect(c.want, func() { w.sync(c.desired...) })
			w.expectStored(c.stored)
			w.expect(nil, func() { w.sync(c.desired...) })
		})
	}
}

func TestADocumentThatKeepsChanging(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && mentions(r, "a") {
			return answer(http.StatusPreconditionFailed, nil, ""), nil
		}
		return nil, nil
	}
	var r outcome
	got := w.requests(func() { r = w.sync() })
	slices.Sort(got)
	// The versions come from a list; the deletions of a do not reach A&AI.
	if diff := cmp.Diff([]string{"DELETE b", "GET", "GET", "GET a", "GET a"}, got); diff != "" {
		t.Errorf("requests, -want +got:\n%s", diff)
	}
	w.expectObjects(map[string]string{"a": "Pending Unavailable"}, r)
	if o := r.Objects[key("a")]; !strings.Contains(o.Message, "keeps changing") {
		t.Errorf("got %+v", o)
	}
	// It is retried after growing pauses, and at once if the desired document changes.
	var asked int
	for range 60 {
		asked += len(w.requests(func() { r = w.sync() }))
		w.advance(time.Second)
	}
	if asked > 14 || !r.NextPass.After(w.clock()) {
		t.Errorf("%d requests in a minute; the next pass is to begin at %s", asked, r.NextPass)
	}
	w.intercept = nil
	w.sync(document("a", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Failed"}})
	w.sync()
	w.expectStored(map[string][]string{})
}

// TestAPlaceThatWasRefusedAndIsTakenIsAConflict asserts that the syncer reads a document that was rejected before. A list
// contains only our documents, so that it does not show that another owner has taken the place.
func TestAPlaceThatWasRefusedAndIsTakenIsAConflict(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{Method: http.MethodPut, Status: http.StatusPreconditionFailed, Count: 3})
	w.expectObjects(map[string]string{"a": "Pending Unavailable"}, w.sync(document("a", "Ready")))
	w.others(http.MethodPut, key("a").Path(), `{"name":"x","group":"","version":"v1","kind":"Pod","namespace":"","selflink":"s","data-owner":"CnfAdapter"}`)
	w.syncer.Resync(tenant)
	w.expect([]string{"GET", "GET a"}, func() { w.expectObjects(map[string]string{"a": "Failed Conflict"}, w.sync(document("a", "Ready"))) })
}

func TestARejectedObjectIsSentAgainWhenItChanges(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	w.advance(time.Second)
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && mentions(r, "a") {
			return answer(http.StatusBadRequest, nil, ""), nil
		}
		return nil, nil
	}
	var r outcome
	w.expect([]string{"GET", "UPDATE b"}, func() { r = w.sync(document("a", "Failed"), document("b", "Failed")) })
	w.expectObjects(map[string]string{"a": "Failed Rejected", "b": "Synced"}, r)
	if !strings.Contains(r.Objects[key("a")].Message, "status 400") {
		t.Errorf("message is %q", r.Objects[key("a")].Message)
	}
	w.expect(nil, func() { r = w.sync(document("a", "Failed"), document("b", "Failed")) })
	w.expectObjects(map[string]string{"a": "Failed Rejected", "b": "Synced"}, r)
	if _, err := w.trySync(document("a", "Pending"), document("b", "Failed")); err != nil || len(w.written) == 0 || w.written[len(w.written)-1].Key != key("a") {
		t.Errorf("what has changed is not tried: %v", err)
	}
	w.intercept = nil
	w.expect(nil, func() { w.sync(document("a", "Pending"), document("b", "Failed")) })
	w.advance(aaisync.DefaultResync)
	w.expect([]string{"GET", "UPDATE a"}, func() { r = w.sync(document("a", "Pending"), document("b", "Failed")) })
	w.expectObjects(map[string]string{"a": "Synced", "b": "Synced"}, r)
}

func TestARejectedDeletion(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.faults(simulator.Fault{Method: http.MethodDelete, Status: http.StatusBadRequest})
	var r outcome
	w.expect([]string{"GET a", "DELETE a"}, func() { r = w.sync() })
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, r)
	w.expect(nil, func() { w.sync() })
	w.ClearFaults()
	w.syncer.Resync(tenant)
	w.expect([]string{"GET", "DELETE a"}, func() { w.sync() })
}

// TestARejectedObjectThatWaitedBefore asserts that a document that waited for a VNF and is then rejected does not wait any more,
// and requests no pass.
func TestARejectedObjectThatWaitedBefore(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"), simulator.GenericVNF("vnf-2"))
	w.sync(document("a", "Ready"))
	waiting := document("a", "Ready", linked("vnf-1"))
	w.expectObjects(map[string]string{"a": "Pending MissingDependency"}, w.sync(waiting))
	w.seed(simulator.GenericVNF("vnf-1"))
	w.others(http.MethodPut, key("a").Path()+"/relationship-list/relationship", `{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-2"}`)
	w.advance(aaisync.DependencyInterval)
	r := w.sync(waiting)
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, r)
	if r.NextPass.Sub(w.now) < aaisync.DependencyInterval {
		t.Errorf("the next pass is in %s, though there is nothing to do before the next resync", r.NextPass.Sub(w.now))
	}
}

func TestARelationshipThatOthersTook(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.others(http.MethodPut, key("a").Path()+"/relationship-list/relationship", `{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-2"}`)
	r := w.sync(document("a", "Failed", linked("vnf-1")))
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, r)
	w.expectStored(map[string][]string{"a": {"-> vnf-2", "hs/link=/network/generic-vnfs/generic-vnf/vnf-1", "hs/status=Failed"}})
	r = w.sync(document("a", "Ready", linked("vnf-1"))) // The state is still written.
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, r)
	w.expectStored(map[string][]string{"a": {"-> vnf-2", "hs/link=/network/generic-vnfs/generic-vnf/vnf-1", "hs/status=Ready"}})
}
