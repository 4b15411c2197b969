package sync_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// withoutVNFs returns the objects of an A&AI that has the tenant, and no VNF.
func withoutVNFs() []simulator.Fixture { return everything()[:2] }

// expectMissing checks that all objects wait for what is missing.
func (r outcome) expectMissing(t *testing.T, problem aai.Problem, objects int, message string) {
	t.Helper()
	if r.Missing != problem || r.Pending != objects {
		t.Errorf("missing is %q, %d pending; want %q and %d", r.Missing, r.Pending, problem, objects)
	}
	for k, o := range r.Objects {
		if o.Reason != aaisync.ReasonMissingDependency || !strings.Contains(o.Message, message) {
			t.Fatalf("%q is %+v", k.ID, o)
		}
	}
}

func TestMissingTenantIsRetried(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"))
	desired := many(100, "Ready")
	var r outcome
	if n := len(w.requests(func() { r = w.sync(desired...) })); n > 1+aaisync.Parallelism {
		t.Errorf("%d requests for 100 objects without a tenant", n)
	}
	r.expectMissing(t, aai.ProblemTenant, 100, `tenant "o/r/t" does not exist`)
	if want := w.now.Add(aaisync.DependencyInterval); !r.NextPass.Equal(want) {
		t.Errorf("next pass at %s, want %s", r.NextPass, want)
	}
	w.advance(aaisync.DependencyInterval - time.Second)
	w.expectSync(nil, desired...)
	w.advance(time.Second)
	w.expectSync([]string{"GET tenant"}, desired...)
	w.seed(simulator.Tenant("o", "r", "t"))
	w.syncer.Resync(tenant) // It ends the wait.
	if r = w.sync(desired...); r.Synced != 100 || len(w.stored()) != 100 {
		t.Errorf("%d synced, %d stored", r.Synced, len(w.stored()))
	}
	w.expectSync(nil, desired...)
}

// TestMissingVNFIsRetried asserts that documents wait for their VNF, but their states do not. One document checks whether the
// VNF exists now, for all that need it. The others are not even read before that.
func TestMissingVNFIsRetried(t *testing.T) {
	w := start(t, withoutVNFs()...)
	w.sync(document("000", "Ready"))
	desired := many(50, "Failed", linked("vnf-1"))
	var r outcome
	if n := len(sent(w.requests(func() { r = w.sync(desired...) }))); n > 10 {
		t.Errorf("%d requests", n)
	}
	r.expectMissing(t, aai.ProblemVNF, 50, `generic-vnf "vnf-1" does not exist in A&AI`)
	w.expectStored(map[string][]string{"000": {"hs/link=/network/generic-vnfs/generic-vnf/vnf-1", "hs/status=Failed"}})
	changed := slices.Concat([]aai.Document{document("000", "Ready", linked("vnf-1"))}, desired[1:])
	w.expectSync([]string{"GET 000", "UPDATE 000"}, changed...)
	w.advance(aaisync.DependencyInterval)
	w.expectSync([]string{"GET 000", "PUT 000 edge"}, changed...)
	w.seed(simulator.GenericVNF("vnf-1"))
	w.advance(aaisync.DependencyInterval)
	if r = w.sync(changed...); r.Synced != 50 {
		t.Errorf("%d synced", r.Synced)
	}
	for id, labels := range w.stored() {
		if !slices.Contains(labels, "-> vnf-1") {
			t.Errorf("%q is not related: %v", id, labels)
		}
	}
}

// TestRejectedDocumentDoesNotWaitForVNF asserts that a document that waited for a VNF and is then rejected requests no pass.
func TestRejectedDocumentDoesNotWaitForVNF(t *testing.T) {
	w := start(t, append(withoutVNFs(), simulator.GenericVNF("vnf-2"))...)
	w.sync(document("a", "Ready"))
	waiting := document("a", "Ready", linked("vnf-1"))
	w.expectObjects(map[string]string{"a": "Pending MissingDependency"}, w.sync(waiting))
	w.seed(simulator.GenericVNF("vnf-1"))
	w.others("put", edgeOf("a"), edgeTo("vnf-2"))
	w.advance(aaisync.DependencyInterval)
	r := w.sync(waiting)
	w.expectObjects(map[string]string{"a": "Failed Rejected"}, r)
	if r.NextPass.Sub(w.now) < aaisync.DependencyInterval {
		t.Errorf("the next pass is in %s, though there is nothing to do before the next resync", r.NextPass.Sub(w.now))
	}
}

// TestCorrectedVNFIsWrittenAtOnce names a VNF that does not exist, and then corrects or removes the name.
func TestCorrectedVNFIsWrittenAtOnce(t *testing.T) {
	w := start(t, append(withoutVNFs(), simulator.GenericVNF("vnf-1"))...)
	r := w.sync(document("a", "Ready", linked("vnf-typo")), document("b", "Ready", linked("vnf-typo")))
	r.expectMissing(t, aai.ProblemVNF, 2, `generic-vnf "vnf-typo" does not exist in A&AI`)
	r = w.sync(document("a", "Ready", linked("vnf-1")), document("b", "Ready"))
	w.expectObjects(map[string]string{"a": "Synced", "b": "Synced"}, r)
	if r.Missing != "" {
		t.Errorf("missing is %q", r.Missing)
	}
}
