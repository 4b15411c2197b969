package sync_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

const (
	in  = aai.InServicePath
	out = aai.OutOfServicePath
)

// statuses are the desired statuses of modules of vnf-1.
type statuses map[string]aai.OperationalStatus

func module(id string) aai.VFModule { return aai.VFModule{GenericVNFID: "vnf-1", ID: id} }

// withModules returns a world in which vnf-1 has modules.
func withModules(t *testing.T, ids ...string) *world {
	t.Helper()
	w := start(t)
	for _, id := range ids {
		w.seed(simulator.VFModule("vnf-1", id))
	}
	return w
}

func (w *world) modules(want statuses) (aaisync.ModuleReport, error) {
	w.t.Helper()
	desired := map[aai.VFModule]aai.OperationalStatus{}
	for id, status := range want {
		desired[module(id)] = status
	}
	return w.syncer.SyncModules(w.t.Context(), "vnf-1", desired)
}

// expectModules runs a pass over modules, which must succeed, and checks the state and the reason of each.
func (w *world) expectModules(desired statuses, want map[string]string) aaisync.ModuleReport {
	w.t.Helper()
	r, err := w.modules(desired)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	got := map[string]string{}
	for m, o := range r.Modules {
		got[m.ID] = strings.TrimSpace(string(o.State) + " " + string(o.Reason))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("modules, -want +got:\n%s", diff)
	}
	return r
}

// status returns the operational-status of a module in A&AI.
func (w *world) status(id string) any {
	d, _ := w.Get(module(id).Path())
	return d["operational-status"]
}

func TestModulesGetTheirStatus(t *testing.T) {
	w := withModules(t, "a", "b", "others")
	synced := map[string]string{"a": "Synced", "b": "Synced"}
	w.expect([]string{"GET modules", "PATCH module a", "PATCH module b"}, func() { w.expectModules(statuses{"a": in, "b": out}, synced) })
	if w.status("a") != string(in) || w.status("b") != string(out) || w.status("others") != nil {
		t.Errorf("A&AI has %v, %v, %v", w.status("a"), w.status("b"), w.status("others"))
	}
	w.expect(nil, func() { w.expectModules(statuses{"a": in, "b": out}, synced) })
	w.advance(time.Minute)
	w.expect([]string{"GET modules", "PATCH module a"}, func() { w.expectModules(statuses{"a": out, "b": out}, synced) })
	// A module that is no longer desired keeps its status.
	w.expect(nil, func() { w.expectModules(statuses{}, map[string]string{}) })
	w.restart()
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": out, "b": out}, synced) })
}

// TestStateOfUndesiredModulesIsDropped asserts that the syncer drops the state of a VNF when no module of it is desired any
// more. VNFs come and go.
func TestStateOfUndesiredModulesIsDropped(t *testing.T) {
	w := withModules(t, "a", "b")
	wanted, synced := statuses{"a": in}, map[string]string{"a": "Synced"}
	w.expectModules(wanted, synced)
	w.expect(nil, func() { w.expectModules(wanted, synced) })
	w.expect(nil, func() { w.expectModules(nil, map[string]string{}) })
	w.expect([]string{"GET modules"}, func() { w.expectModules(wanted, synced) })
}

func TestModulesThatOthersChange(t *testing.T) {
	w := withModules(t, "a")
	w.expectModules(statuses{"a": in}, map[string]string{"a": "Synced"})
	others := func(status aai.OperationalStatus) {
		w.advance(6 * time.Second)
		w.others(http.MethodPatch, module("a").Path(), fmt.Sprintf(`{"operational-status":%q,"orchestration-status":"Active"}`, status))
	}
	others("in repair")
	w.expect(nil, func() { w.expectModules(statuses{"a": in}, map[string]string{"a": "Synced"}) })
	w.syncer.ResyncModules("vnf-1")
	w.expect([]string{"GET modules", "PATCH module a"}, func() { w.expectModules(statuses{"a": in}, map[string]string{"a": "Synced"}) })
	others(out) // We are about to write the same status.
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": out}, map[string]string{"a": "Synced"}) })
	w.advance(aaisync.DefaultResync)
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": out}, map[string]string{"a": "Synced"}) })
	w.restart() // The version is known now, because nothing is written.
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": out}, map[string]string{"a": "Synced"}) })
	others(in)
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": in}, map[string]string{"a": "Synced"}) })
	if d, _ := w.Get(module("a").Path()); d["orchestration-status"] != "Active" {
		t.Errorf("what others have written is gone: %v", d)
	}
}

func TestModulesThatAreMissing(t *testing.T) {
	w := withModules(t, "a")
	waiting := map[string]string{"a": "Synced", "b": "Pending MissingDependency"}
	var r aaisync.ModuleReport
	w.expect([]string{"GET modules", "PATCH module a"}, func() { r = w.expectModules(statuses{"a": in, "b": in}, waiting) })
	if !strings.Contains(r.Modules[module("b")].Message, `vf-module "b"`) || !r.NextPass.Equal(w.now.Add(aaisync.DependencyInterval)) {
		t.Errorf("%+v, next pass at %s", r.Modules[module("b")], r.NextPass)
	}
	w.advance(aaisync.DependencyInterval - time.Second)
	w.expect(nil, func() { w.expectModules(statuses{"a": in, "b": in}, waiting) })
	w.advance(time.Second)
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": in, "b": in}, waiting) })
	w.seed(simulator.VFModule("vnf-1", "b"))
	w.advance(aaisync.DependencyInterval)
	w.expect([]string{"GET modules", "PATCH module b"}, func() {
		w.expectModules(statuses{"a": in, "b": in}, map[string]string{"a": "Synced", "b": "Synced"})
	})
}

func TestModulesOfAVNFThatDoesNotExist(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"))
	w.expect([]string{"GET modules"}, func() { w.expectModules(statuses{"a": in}, map[string]string{"a": "Pending MissingDependency"}) })
	if len(w.State()) != 1 {
		t.Errorf("something was created: %v", w.State())
	}
}

func TestModuleErrors(t *testing.T) {
	cases := map[string]struct {
		fault simulator.Fault
		kind  aai.ErrorKind // of the error; empty for none
		state string
		again []string
		probe bool // whether a probe comes next
	}{
		"the answer is lost":      {simulator.Fault{Method: http.MethodPatch, Drop: simulator.DropAfterCommit}, aai.Retry, "Pending Unavailable", []string{"GET modules"}, true},
		"the request is lost":     {simulator.Fault{Method: http.MethodPatch, Drop: simulator.DropBeforeCommit}, aai.Retry, "Pending Unavailable", []string{"GET modules", "PATCH module a"}, true},
		"no backend":              {simulator.Fault{Status: http.StatusServiceUnavailable}, aai.Retry, "Pending NotTried", []string{"GET modules", "PATCH module a"}, true},
		"storage locks":           {simulator.Fault{Method: http.MethodPatch, Code: "AAI_6134"}, aai.Retry, "Pending Unavailable", []string{"GET modules", "PATCH module a"}, false},
		"gone before the write":   {simulator.Fault{Method: http.MethodPatch, Status: http.StatusPreconditionFailed}, aai.Retry, "Pending Unavailable", []string{"GET modules", "PATCH module a"}, false},
		"another password by now": {simulator.Fault{Method: http.MethodPatch, Status: http.StatusForbidden}, aai.Misconfigured, "Pending NotTried", []string{"PATCH module a"}, true},
		"refused":                 {simulator.Fault{Method: http.MethodPatch, Status: http.StatusBadRequest}, "", "Failed Rejected", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := withModules(t, "a")
			w.sync() // The fault must not hit the probe.
			c.fault.Count = 1
			w.faults(c.fault)
			r, err := w.modules(statuses{"a": in})
			if o := r.Modules[module("a")]; string(o.State)+" "+string(o.Reason) != c.state || o.Message == "" {
				t.Errorf("it is %+v, want %s", o, c.state)
			}
			if (err == nil) != (c.kind == "") || err != nil && aai.KindOf(err) != c.kind {
				t.Errorf("got %v, want %q", err, c.kind)
			}
			if c.kind == "" {
				w.expect(nil, func() { w.expectModules(statuses{"a": in}, map[string]string{"a": c.state}) })
				w.syncer.ResyncModules("vnf-1")
				c.again = []string{"GET modules", "PATCH module a"}
			}
			probes := 0
			w.expect(c.again, func() {
				probes = w.probes(func() { w.expectModules(statuses{"a": in}, map[string]string{"a": "Synced"}) })
			})
			if c.probe != (probes == 1) {
				t.Errorf("%d probes after %s", probes, name)
			}
			if w.status("a") != string(in) {
				t.Errorf("A&AI has %v", w.status("a"))
			}
		})
	}
}

// TestRefusedStatusIsNotSentAgainWithOthers has a module whose status A&AI refuses, beside one that changes all the time.
func TestRefusedStatusIsNotSentAgainWithOthers(t *testing.T) {
	w := withModules(t, "a", "b")
	w.faults(simulator.Fault{Method: http.MethodPatch, PathPrefix: "/aai/v32" + module("a").Path(), Status: http.StatusBadRequest})
	refused := map[string]string{"a": "Failed Rejected", "b": "Synced"}
	w.expect([]string{"GET modules", "PATCH module a", "PATCH module b"}, func() { w.expectModules(statuses{"a": in, "b": in}, refused) })
	for i := range 10 {
		w.advance(time.Second)
		w.expect([]string{"GET modules", "PATCH module b"}, func() { w.expectModules(statuses{"a": in, "b": []aai.OperationalStatus{out, in}[i%2]}, refused) })
	}
	w.expect([]string{"PATCH module a"}, func() { w.expectModules(statuses{"a": out, "b": in}, refused) })
}

func TestModulesOfAnotherVNFAreRefused(t *testing.T) {
	w := start(t)
	w.expect(nil, func() {
		if _, err := w.syncer.SyncModules(t.Context(), "vnf-2", map[aai.VFModule]aai.OperationalStatus{module("a"): in}); err == nil {
			t.Error("no error")
		}
	})
}

// TestModulesConverge mixes changes of desired statuses, faults, operations of third parties and restarts. In all cases, no
// module is created, and a module that is not desired is not changed. In the end, the modules that exist have the desired
// statuses.
func TestModulesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, everything()...)
		desired, exists := statuses{}, map[string]bool{"spare": true}
		w.seed(simulator.VFModule("vnf-1", "spare"))
		id := rapid.SampledFrom([]string{"a", "b", "c"})
		withoutFaults := func(do func()) {
			rules := w.Faults()
			w.ClearFaults()
			do()
			w.faults(rules...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"desire": func(t *rapid.T) {
				desired[id.Draw(t, "id")] = rapid.SampledFrom([]aai.OperationalStatus{in, out}).Draw(t, "status")
			},
			"forsake": func(t *rapid.T) { delete(desired, id.Draw(t, "id")) },
			"pass":    func(*rapid.T) { _, _ = w.modules(desired) },
			"restart": func(*rapid.T) { w.restart() },
			"time":    func(t *rapid.T) { w.advance(time.Duration(rapid.IntRange(1, 3600).Draw(t, "seconds")) * time.Second) },
			"appears": func(t *rapid.T) {
				if n := id.Draw(t, "id"); !exists[n] {
					exists[n] = true
					w.seed(simulator.VFModule("vnf-1", n))
				}
			},
			"others write": func(t *rapid.T) {
				if n := id.Draw(t, "id"); exists[n] {
					withoutFaults(func() {
						w.advance(10 * time.Second)
						w.others(http.MethodPatch, module(n).Path(), `{"operational-status":"odd"}`)
					})
				}
			},
			"fault": func(t *rapid.T) {
				f := rapid.SampledFrom([]simulator.Fault{
					{Status: http.StatusServiceUnavailable}, {Code: "AAI_6134"}, {Truncate: true}, {Drop: simulator.DropAfterCommit}, {Drop: simulator.DropBeforeCommit},
					{Status: http.StatusForbidden}, {Status: http.StatusBadRequest}, {Status: http.StatusPreconditionFailed},
				}).Draw(t, "fault")
				f.Count = 1
				w.faults(f)
			},
		})
		w.ClearFaults()
		w.syncer.ResyncModules("vnf-1")
		r, err := w.modules(desired)
		if err != nil {
			t.Fatalf("in the end: %v", err)
		}
		for n, want := range desired {
			if state := r.Modules[module(n)].State; exists[n] != (state == aaisync.Synced) || exists[n] && w.status(n) != string(want) {
				t.Fatalf("%q is %v in A&AI, want %s; it is reported as %s", n, w.status(n), want, state)
			}
		}
		for _, d := range w.List(aai.VFModulesPath("vnf-1")) {
			if n, _ := d["vf-module-id"].(string); !exists[n] {
				t.Fatalf("%q was created", n)
			}
		}
		if spare := w.status("spare"); spare != nil {
			t.Fatalf("what is not desired is %v", spare)
		}
		if sent := w.requests(func() { _, _ = w.modules(desired) }); len(sent) > 0 {
			t.Fatalf("nothing is left to do, but %q was sent", sent)
		}
		w.checkRequests()
	})
}
