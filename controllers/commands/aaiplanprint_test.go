package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/controllers/inventory"
)

// TestPlansAreSortedByResource: an object has the same place in every plan, for any operation, so that plans can be compared
// with diff.
func TestPlansAreSortedByResource(t *testing.T) {
	tenant := aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "t"}
	key := func(id string) aai.Key { return aai.Key{Tenant: tenant, ID: id} }
	service := func(name string) aai.Document { return aai.Document{Kind: "Service", Namespace: "ns", Name: name} }
	edge := func(cluster string) aai.Document {
		return aai.Document{Kind: "Service", Namespace: "ns", Name: "f", DataSource: cluster}
	}
	module := func(id string) aai.VFModule { return aai.VFModule{GenericVNFID: "v", ID: id} }
	preview := inventory.Preview{Modules: []plan.StatusChange{{Module: module("n"), To: aai.InServicePath}}, MissingModules: []aai.VFModule{module("m")}, Tenants: []inventory.TenantPreview{{
		Tenant: tenant,
		Plan: plan.Plan{
			Operations: []plan.Operation{
				{Verb: plan.Create, Key: key("0"), Document: service("d")}, {Verb: plan.Delete, Key: key("1")},
				{Verb: plan.Create, Key: key("6"), Document: edge("edge02")}, {Verb: plan.Create, Key: key("7"), Document: edge("edge01")},
				{Verb: plan.Update, Key: key("9")}, {Verb: plan.Update, Key: key("2")}, {Verb: plan.Relate, Key: key("2"), Relationship: aai.RelationshipToGenericVNF("v")},
			},
			Skipped:   []plan.Skipped{{Key: key("3"), Message: "the policy is upsert-only"}},
			Conflicts: []plan.Conflict{{Key: key("4"), Owner: "other"}},
		},
		Waiting: []inventory.Waiting{{
			Operation: plan.Operation{Verb: plan.Create, Key: key("5"), Document: service("cc")}, Message: `generic-vnf "v" does not exist in A&AI`,
		}},
		Current: map[aai.Key]aai.Document{key("1"): service("e"), key("2"): service("b"), key("3"): service("c"), key("4"): service("a"), key("9"): service("a")},
	}}}
	var out strings.Builder
	if err := printPlan(&out, preview); !errors.Is(err, errNo) {
		t.Errorf("got %v", err)
	}
	want := `! Service/ns/a in o/r/t: its place belongs to data-owner "other"
~ Service/ns/a in o/r/t: fields
~ Service/ns/b in o/r/t: fields
~ Service/ns/b in o/r/t: relate to /network/generic-vnfs/generic-vnf/v
= Service/ns/c in o/r/t: not deleted, the policy is upsert-only
! Service/ns/cc in o/r/t: waits, generic-vnf "v" does not exist in A&AI
+ Service/ns/d in o/r/t
- Service/ns/e in o/r/t
+ Service/ns/f of edge01 in o/r/t
+ Service/ns/f of edge02 in o/r/t
! vf-module v/m does not exist in A&AI: its operational-status waits
~ vf-module v/n: operational-status=in-service-path, now ""
3 to create, 4 to change, 1 to delete, 1 deletions held, 1 conflicts, 2 waiting
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
