package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

func TestModules(t *testing.T) {
	s, url := simulate(t, simulator.Options{})
	c := connect(t, url, func(o *client.Options) { o.Credentials = nil })
	type modules = map[aai.VFModule]aai.VFModuleStatus
	list := func(want modules, of string) modules {
		t.Helper()
		got, err := c.ListVFModules(t.Context(), of)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(aai.VFModuleStatus{}, "ResourceVersion")); diff != "" || err != nil {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
		return got
	}
	list(modules{}, "unknown")
	list(modules{}, "vnf-1")
	if err := s.Seed(simulator.VFModule("vnf-1", "a module"), simulator.VFModule("vnf-1", "b")); err != nil {
		t.Fatal(err)
	}
	module, b := aai.VFModule{GenericVNFID: "vnf-1", ID: "a module"}, aai.VFModule{GenericVNFID: "vnf-1", ID: "b"}
	before, _ := s.Get(module.Path())
	was := list(modules{module: {}, b: {}}, "vnf-1")
	if err := c.SetOperationalStatus(t.Context(), module, aai.OutOfServicePath, was[module].ResourceVersion); err != nil {
		t.Fatal(err)
	}
	is := list(modules{module: {Status: aai.OutOfServicePath}, b: {}}, "vnf-1")
	if was[module].ResourceVersion == is[module].ResourceVersion || was[b] != is[b] {
		t.Errorf("versions were %v and are %v", was, is)
	}
	after, _ := s.Get(module.Path())
	delete(after, "operational-status")
	if diff := cmp.Diff(before, after, cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "resource-version" })); diff != "" {
		t.Errorf("more has changed than the status:\n%s", diff)
	}
	if err := c.SetOperationalStatus(t.Context(), aai.VFModule{GenericVNFID: "vnf-1", ID: "none"}, aai.InServicePath, "1"); aai.KindOf(err) != aai.Conflict {
		t.Errorf("a module that does not exist: %v, want Conflict", err)
	}
}
