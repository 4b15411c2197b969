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

// expectModules runs a pass over modules, which must succeed, and checks its requests and the state and the reason of each module.
func (w *world) expectModules(requests []string, desired statuses, want map[string]string) (r aaisync.ModuleReport) {
	w.t.Helper()
	w.expect(requests, func() {
		var err error
		if r, err = w.modules(desired); err != nil {
			w.t.Fatalf("%v", err)
		}
	})
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
	r := w.expectModules([]string{"GET modules", "PATCH module a", "PATCH module b"}, statuses{"a": in, "b": out}, synced)
	if w.status("a") != string(in) || w.status("b") != string(out) || w.status("others") != nil || r.Written != 2 {
		t.Errorf("A&AI has %v, %v, %v; %d written", w.status("a"), w.status("b"), w.status("others"), r.Written)
	}
	w.expectModules(nil, statuses{"a": in, "b": out}, synced)
	w.advance(time.Minute)
	r = w.expectModules([]string{"GET modules", "PATCH module a"}, statuses{"a": out, "b": out}, synced)
	if !r.NextPass.Equal(w.now.Add(aaisync.DefaultResync - time.Minute)) {
		t.Errorf("next pass at %s", r.NextPass)
	}
	// A VNF without desired modules keeps its statuses. The syncer drops its state, because VNFs come and go.
	w.expectModules(nil, nil, map[string]string{})
	w.expectModules([]string{"GET modules"}, statuses{"a": out, "b": out}, synced)
}

// TestModulesThatOthersChange asserts that the syncer reads a status before it writes it, unless it has read it within five
// seconds, and repairs it at a resync.
func TestModulesThatOthersChange(t *testing.T) {
	w := withModules(t, "a")
	synced := map[string]string{"a": "Synced"}
	w.expectModules([]string{"GET modules", "PATCH module a"}, statuses{"a": in}, synced)
	others := func(status aai.OperationalStatus) {
		w.advance(6 * time.Second)
		w.others("patch", module("a").Path(), map[string]any{"operational-status": string(status)})
	}
	others("in repair")
	w.expectModules(nil, statuses{"a": in}, synced)
	w.syncer.ResyncModules("vnf-1")
	w.expectModules([]string{"GET modules", "PATCH module a"}, statuses{"a": in}, synced)
	others(out) // We are about to write the same status.
	w.expectModules([]string{"GET modules"}, statuses{"a": out}, synced)
	w.advance(aaisync.DefaultResync)
	w.expectModules([]string{"GET modules"}, statuses{"a": out}, synced)
	w.advance(5 * time.Second) // The version is known, because nothing was written.
	w.expectModules([]string{"PATCH module a"}, statuses{"a": in}, synced)
}

func TestMissingModulesAreRetried(t *testing.T) {
	w := withModules(t, "a")
	desired, waiting := statuses{"a": in, "b": in}, map[string]string{"a": "Synced", "b": "Pending MissingDependency"}
	r := w.expectModules([]string{"GET modules", "PATCH module a"}, desired, waiting)
	if want := `generic-vnf "vnf-1" has no vf-module "b"`; r.Modules[module("b")].Message != want || !r.NextPass.Equal(w.now.Add(aaisync.DependencyInterval)) {
		t.Errorf("%+v, next pass at %s", r.Modules[module("b")], r.NextPass)
	}
	w.advance(aaisync.DependencyInterval - time.Second)
	w.expectModules(nil, desired, waiting)
	w.advance(time.Second)
	w.expectModules([]string{"GET modules"}, desired, waiting)
	w.seed(simulator.VFModule("vnf-1", "b"))
	w.advance(aaisync.DependencyInterval)
	w.expectModules([]string{"GET modules", "PATCH module b"}, desired, map[string]string{"a": "Synced", "b": "Synced"})
}

func TestModulesOfMissingVNF(t *testing.T) {
	w := start(t, simulator.CloudRegion("o", "r"))
	w.expectModules([]string{"GET modules"}, statuses{"a": in}, map[string]string{"a": "Pending MissingDependency"})
	if len(w.State()) != 1 {
		t.Errorf("something was created: %v", w.State())
	}
}

func TestModuleErrors(t *testing.T) {
	read, write, both := []string{"GET modules"}, []string{"PATCH module a"}, []string{"GET modules", "PATCH module a"}
	cases := map[string]struct {
		fault simulator.Fault
		kind  aai.ErrorKind // of the error; empty for none
		state string
		again []string
		probe int // the number of probes that come next
	}{
		"the answer is lost":      {simulator.Fault{Method: http.MethodPatch, Drop: simulator.DropAfterCommit}, aai.Retry, "Pending Unavailable", read, 1},
		"the request is lost":     {simulator.Fault{Method: http.MethodPatch, Drop: simulator.DropBeforeCommit}, aai.Retry, "Pending Unavailable", both, 1},
		"no backend":              {simulator.Fault{Status: http.StatusServiceUnavailable}, aai.Retry, "Pending NotTried", both, 1},
		"storage locks":           {simulator.Fault{Method: http.MethodPatch, Code: "AAI_6134"}, aai.Retry, "Pending Unavailable", both, 0},
		"gone before the write":   {simulator.Fault{Method: http.MethodPatch, Status: http.StatusPreconditionFailed}, aai.Retry, "Pending Unavailable", both, 0},
		"another password by now": {simulator.Fault{Method: http.MethodPatch, Status: http.StatusForbidden}, aai.Misconfigured, "Pending NotTried", write, 1},
		"refused":                 {simulator.Fault{Method: http.MethodPatch, Status: http.StatusBadRequest}, "", "Failed Rejected", both, 0},
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
				w.expectModules(nil, statuses{"a": in}, map[string]string{"a": c.state})
				w.syncer.ResyncModules("vnf-1")
			}
			probes := w.probes(func() { w.expectModules(c.again, statuses{"a": in}, map[string]string{"a": "Synced"}) })
			if probes != c.probe {
				t.Errorf("%d probes after %s", probes, name)
			}
			if w.status("a") != string(in) {
				t.Errorf("A&AI has %v", w.status("a"))
			}
		})
	}
}

func TestNoModuleIsWrittenAfterAnOutage(t *testing.T) {
	w := withModules(t, "a", "b")
	w.faults(simulator.Fault{Method: http.MethodPatch, Status: http.StatusServiceUnavailable})
	w.expect([]string{"GET modules", "PATCH module a"}, func() {
		r, err := w.modules(statuses{"a": in, "b": in})
		if aai.KindOf(err) != aai.Retry || r.Modules[module("b")].Reason != aaisync.ReasonNotTried {
			t.Errorf("%+v, %v", r.Modules, err)
		}
	})
}

// TestRefusedStatusIsNotSentAgain has a module whose status A&AI refuses, beside one that changes. Every attempt is audited.
func TestRefusedStatusIsNotSentAgain(t *testing.T) {
	w := withModules(t, "a", "b")
	var audited []string
	w.restart(func(o *aaisync.Options) {
		o.AuditStatus = func(e aaisync.StatusWriteEvent) {
			last := w.Requests()[len(w.Requests())-1]
			audited = append(audited, fmt.Sprintf("%s %s, acknowledged %t, id %t", e.Module.ID, e.To, e.Err == nil, e.TransactionID == last.Header.Get("X-TransactionId")))
		}
	})
	w.faults(simulator.Fault{Method: http.MethodPatch, PathPrefix: "/aai/v32" + module("a").Path(), Status: http.StatusBadRequest})
	refused := map[string]string{"a": "Failed Rejected", "b": "Synced"}
	r := w.expectModules([]string{"GET modules", "PATCH module a", "PATCH module b"}, statuses{"a": in, "b": in}, refused)
	if diff := cmp.Diff([]string{"a in-service-path, acknowledged false, id true", "b in-service-path, acknowledged true, id true"}, audited); diff != "" || r.Written != 1 {
		t.Errorf("%d written, -want +got:\n%s", r.Written, diff)
	}
	w.advance(time.Second)
	w.expectModules([]string{"GET modules", "PATCH module b"}, statuses{"a": in, "b": out}, refused)
	w.expectModules([]string{"PATCH module a"}, statuses{"a": out, "b": out}, refused)
}

func TestModulesOfAnotherVNFAreRefused(t *testing.T) {
	w := start(t)
	w.expect(nil, func() {
		_, err := w.syncer.SyncModules(t.Context(), "vnf-2", map[aai.VFModule]aai.OperationalStatus{module("a"): in})
		if want := `cannot synchronize the modules of generic-vnf "vnf-2": module "vnf-1/a" is of another`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
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
					w.advance(10 * time.Second)
					w.others("patch", module(n).Path(), map[string]any{"operational-status": "odd"})
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
