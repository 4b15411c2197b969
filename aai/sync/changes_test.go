package sync_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
)

// statesOf returns the states of the documents in A&AI by id.
func (w *world) statesOf() map[string]string {
	states := map[string]string{}
	for id, labels := range w.stored() {
		for _, label := range labels {
			if status, ok := strings.CutPrefix(label, "hs/status="); ok {
				states[id] = status
			}
		}
	}
	return states
}

// of returns documents in the given states.
func of(states map[string]string) (list []aai.Document) {
	for _, id := range slices.Sorted(maps.Keys(states)) {
		list = append(list, document(id, states[id]))
	}
	return list
}

// TestEveryChangeIsOneWrite changes the desired documents at random, also while the program is down, without a third party. A
// pass writes each object that differs once, and no other. Documents that are no longer desired after a restart are deleted, and
// a resync without differences writes nothing.
func TestEveryChangeIsOneWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, everything()...)
		desired := map[string]string{}
		t.Repeat(map[string]func(*rapid.T){
			"desire": func(t *rapid.T) {
				desired[anyID(t)] = rapid.SampledFrom([]string{"Ready", "Pending", "Failed"}).Draw(t, "status")
			},
			"forsake": func(t *rapid.T) { delete(desired, anyID(t)) },
			"time":    func(t *rapid.T) { w.advance(time.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * time.Second) },
			"restart": func(*rapid.T) { w.restart() },
			"resync":  func(*rapid.T) { w.syncer.Resync(tenant) },
			"pass": func(t *rapid.T) {
				had := w.statesOf()
				var want []string
				for _, id := range ids {
					switch status, wanted := desired[id]; {
					case wanted && had[id] == "":
						want = append(want, "PUT "+id)
					case wanted && had[id] != status:
						want = append(want, "UPDATE "+id)
					case !wanted && had[id] != "":
						want = append(want, "DELETE "+id)
					}
				}
				got := writes(w.requests(func() { w.sync(of(desired)...) }))
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("writes, -want +got:\n%s", diff)
				}
				if diff := cmp.Diff(desired, w.statesOf()); diff != "" {
					t.Fatalf("in A&AI, -want +got:\n%s", diff)
				}
			},
		})
		w.checkRequests()
	})
}

// TestStateAfterOutageIsIndependentOfChangeOrder makes changes while A&AI is down, in two orders with the same final state.
func TestStateAfterOutageIsIndependentOfChangeOrder(t *testing.T) {
	type change struct{ id, status string } // An empty status means a deletion.
	rapid.Check(t, func(t *rapid.T) {
		before := map[string]string{}
		for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom(ids), rapid.ID).Draw(t, "before") {
			before[id] = "Ready"
		}
		final := map[string]change{}
		for _, id := range ids {
			final[id] = change{id, rapid.SampledFrom([]string{"Ready", "Failed", ""}).Draw(t, "final "+id)}
		}
		outage := func(label string) (stored map[string]string, written []string) {
			w := newWorld(t, everything()...)
			w.sync(of(before)...)
			w.advance(time.Second)
			w.faults(simulator.Fault{Status: http.StatusServiceUnavailable})
			desired := maps.Clone(before)
			meanwhile := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) change {
				return change{anyID(t), rapid.SampledFrom([]string{"Ready", "Pending", "Failed", ""}).Draw(t, "status")}
			}), 0, 10).Draw(t, "meanwhile "+label)
			for _, c := range append(meanwhile, rapid.Permutation(slices.SortedFunc(maps.Values(final), func(a, b change) int { return strings.Compare(a.id, b.id) })).Draw(t, "order "+label)...) {
				if desired[c.id] = c.status; c.status == "" {
					delete(desired, c.id)
				}
				_, _ = w.trySync(of(desired)...)
				if diff := cmp.Diff(before, w.statesOf()); diff != "" {
					t.Fatalf("A&AI is down, and yet:\n%s", diff)
				}
			}
			w.ClearFaults()
			written = writes(w.requests(func() { w.sync(of(desired)...) }))
			w.checkRequests()
			return w.statesOf(), written
		}
		stored, written := outage("one")
		again, writtenAgain := outage("two")
		if diff := cmp.Diff(stored, again); diff != "" {
			t.Fatalf("A&AI is left in two ways:\n%s", diff)
		}
		// Each object that differs is written once, whatever states it had in between.
		if diff := cmp.Diff(written, writtenAgain, cmpEmpty); diff != "" || len(slices.Compact(written)) != len(written) {
			t.Fatalf("%q is written, and in another order:\n%s", written, diff)
		}
	})
}

// TestCostOfPassIsIndependentOfDocuments compares passes without a change over few and many documents.
func TestCostOfPassIsIndependentOfDocuments(t *testing.T) {
	allocations := func(documents int) float64 {
		w := start(t)
		w.sync(many(documents, "Ready")...)
		return testing.AllocsPerRun(5, func() {
			if r, err := w.syncer.Sync(t.Context(), tenant, inTurn()); err != nil || r.Synced != documents {
				t.Errorf("%d synced, %v", r.Synced, err)
			}
		})
	}
	if few, more := allocations(10), allocations(1000); more > few+10 {
		t.Errorf("%.0f allocations with 10 documents, %.0f with 1000", few, more)
	}
}

// TestCostOfResyncIsIndependentOfFormerDocuments compares full reads of a tenant in which few and many documents came and went.
func TestCostOfResyncIsIndependentOfFormerDocuments(t *testing.T) {
	allocations := func(documents int) float64 {
		w := start(t)
		w.sync(many(documents, "Ready")...)
		w.sync()
		return testing.AllocsPerRun(5, func() {
			w.syncer.Resync(tenant)
			if _, err := w.syncer.Sync(t.Context(), tenant, inTurn()); err != nil {
				t.Error(err)
			}
		})
	}
	if few, more := allocations(10), allocations(1000); more > few+500 {
		t.Errorf("%.0f allocations after 10 documents, %.0f after 1000", few, more)
	}
}

// peerReads is the number of reads for a resource in each pass of so-cnf-adapter, according to its documentation: the resource,
// its module and its VNF, one by one. Its bulk requests are additional. Passes that look for stale objects also read the linked
// resources again.
const peerReads = 3

// flippingWorld is a world whose documents flip between Ready and Failed. Every tenth has relationships.
type flippingWorld struct {
	*busyWorld

	states [5000]string
}

// set makes a document desired in a state, or in its previous one if status is empty.
func (w *flippingWorld) set(n int, status string) {
	if status != "" {
		w.states[n] = status
	}
	d := numbered(n, w.states[n])
	if n%10 == 0 {
		related(aai.RelationshipToGenericVNF("vnf-1"), aai.RelationshipToVFModule("vnf-1", "module-1"))(&d)
	}
	w.want(d)
}

func (w *flippingWorld) setAll(status string) {
	for n := range w.states {
		w.set(n, status)
	}
}

func (w *flippingWorld) flip(n int) {
	w.set(n, map[string]string{"Ready": "Failed", "Failed": "Ready"}[w.states[n]])
}

// TestRequestsPerTenantAreBounded limits the number of requests for a tenant with 5000 objects, some of which have relationships, with
// pages of the default size. In no case is it more than a twentieth of what ONAP's so-cnf-adapter needs.
func TestRequestsPerTenantAreBounded(t *testing.T) {
	w := &flippingWorld{busyWorld: startBusy(t)}
	objects := len(w.states)
	w.seed(simulator.VFModule("vnf-1", "module-1"))
	w.pageSize = 0
	w.connect("http://aai.example", w, nil)
	left := objects
	sync := func() { w.pass(left) }
	oneByOne := func(step int) {
		for n := range 100 {
			w.flip(n * step)
			sync()
		}
	}
	together := func(count int) {
		for n := range count {
			w.flip(n * 11)
		}
		sync()
	}
	cases := []struct {
		what string
		do   func()
		most int
	}{
		{"the first pass", func() { w.setAll("Ready"); sync() }, 200},
		{"a pass without a change", sync, 0},
		{"100 changes one after the other", func() { oneByOne(7) }, 220},
		{"100 changes of one object", func() { oneByOne(0) }, 220},
		{"25 changes that come together", func() { together(25) }, 26},
		{"100 changes that come together", func() { together(100) }, 14},
		{"a resync", func() { w.syncer.Resync(tenant); sync() }, 10},
		{"a restart", func() { w.world.restart(); w.setAll(""); sync() }, 11},
		{"a change of all in versions that a list had", func() { w.setAll("Pending"); sync() }, 180},
		{"a change of all in unknown versions", func() { w.setAll("Ready"); sync() }, 180},
		{"the end of all", func() {
			for id := range w.stored() {
				w.drop(id)
			}
			left = 0
			sync()
		}, 180},
	}
	for _, test := range cases {
		before := len(w.Requests())
		test.do()
		if n := len(w.Requests()) - before; n > test.most || n*20 > peerReads*objects {
			t.Errorf("%s: %d requests, want %d at most; the peer needs %d to read all", test.what, n, test.most, peerReads*objects)
		}
	}
	if stored := w.stored(); len(stored) > 0 {
		t.Errorf("%d are left", len(stored))
	}
}
