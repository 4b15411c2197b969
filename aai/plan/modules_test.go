package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

func TestModules(t *testing.T) {
	module := func(id string) aai.VFModule { return aai.VFModule{GenericVNFID: "vnf-1", ID: id} }
	desired := map[aai.VFModule]aai.OperationalStatus{
		module("same"): aai.InServicePath, module("other"): aai.OutOfServicePath, module("none"): aai.InServicePath, module("absent"): aai.InServicePath,
		{GenericVNFID: "vnf-0", ID: "same"}: aai.InServicePath,
	}
	current := map[aai.VFModule]aai.VFModuleStatus{
		module("same"):  {Status: aai.InServicePath, ResourceVersion: "1"},
		module("other"): {Status: "in repair", ResourceVersion: "2"},
		module("none"):  {ResourceVersion: "3"},
		module("spare"): {Status: aai.OutOfServicePath, ResourceVersion: "4"},
	}
	changes, missing := plan.Modules(desired, current)
	want := []plan.StatusChange{
		{Module: module("none"), To: aai.InServicePath, ResourceVersion: "3"},
		{Module: module("other"), From: "in repair", To: aai.OutOfServicePath, ResourceVersion: "2"},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]aai.VFModule{{GenericVNFID: "vnf-0", ID: "same"}, module("absent")}, missing); diff != "" {
		t.Errorf("missing, -want +got:\n%s", diff)
	}
}
