package client_test

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

// simulate returns a simulated A&AI with a region, a tenant and a VNF, and its URL. It fails the test if a request violates the
// rules of the simulator's strict mode.
func simulate(t *testing.T, o simulator.Options) (*simulator.Simulator, string) {
	t.Helper()
	o.Strict, o.Users = true, map[string]string{user: password}
	s := simulator.New(o)
	if err := s.Seed(
		simulator.CloudRegion(tenant.CloudOwner, tenant.CloudRegionID),
		simulator.Tenant(tenant.CloudOwner, tenant.CloudRegionID, tenant.TenantID),
		simulator.GenericVNF("vnf-1"),
	); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		if diff := cmp.Diff([]simulator.Violation{}, s.Violations()); diff != "" {
			t.Errorf("violations, -want +got:\n%s", diff)
		}
	})
	return s, server.URL
}

func other(id string) aai.Key { return aai.Key{Tenant: tenant, ID: id} }

// TestKindsOfRefusedWrites asserts what Write promises about the errors of A&AI.
func TestKindsOfRefusedWrites(t *testing.T) {
	_, url := simulate(t, simulator.Options{})
	c := connect(t, url)
	nowhere := aai.Key{Tenant: aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "none"}, ID: "x"}
	linked := document("linked")
	linked.RelationshipList.Relationships = []aai.Relationship{aai.RelationshipToGenericVNF("none")}
	absent := inVersion("1", "a=b")
	absent.ID = "13dd1"
	if err := c.Write(t.Context(), client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		write client.Write
		kind  aai.ErrorKind
	}{
		"create twice":        {client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}, aai.Conflict},
		"no tenant":           {client.Write{Op: aai.OpPut, Key: nowhere, Document: document("x")}, aai.MissingDependency},
		"no VNF, in a create": {client.Write{Op: aai.OpPut, Key: other("linked"), Document: linked}, aai.MissingDependency},
		"no VNF":              {client.Write{Op: aai.OpRelate, Key: key, Relationship: aai.RelationshipToGenericVNF("none")}, aai.MissingDependency},
		"update of nothing":   {client.Write{Op: aai.OpUpdate, Key: other("13dd1"), Document: absent}, aai.Conflict},
		"delete of nothing":   {client.Write{Op: aai.OpDelete, Key: nowhere, ResourceVersion: "1"}, aai.Conflict},
		"relate of nothing":   {client.Write{Op: aai.OpRelate, Key: nowhere, Relationship: vnf}, aai.Conflict},
		"unrelate of nothing": {client.Write{Op: aai.OpUnrelate, Key: nowhere, Relationship: vnf}, aai.Conflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if e := failure(t, c.Write(t.Context(), tc.write)); e.Kind != tc.kind || e.Code == "" || e.Message == "" {
				t.Errorf("got %s, code %q: %v; want %s", e.Kind, e.Code, e, tc.kind)
			}
		})
	}
}

func TestWhatDoesNotExistIsNoError(t *testing.T) {
	_, url := simulate(t, simulator.Options{})
	c, ctx := connect(t, url), t.Context()
	nowhere := aai.Tenant{CloudOwner: tenant.CloudOwner, CloudRegionID: tenant.CloudRegionID, TenantID: "nowhere"}
	has := func(exists bool, err error) bool {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return exists
	}
	if _, found, err := c.GetK8sResource(ctx, key); has(found, err) {
		t.Error("found a document that does not exist")
	}
	if list, err := c.ListK8sResources(ctx, nowhere, "x"); has(len(list) > 0, err) {
		t.Errorf("a tenant that does not exist has %v", list)
	}
	for _, of := range []string{"vnf-1", "unknown"} {
		if modules, err := c.ListVFModules(ctx, of); modules == nil || has(len(modules) > 0, err) {
			t.Errorf("%s has the modules %v, want an empty map", of, modules)
		}
	}
	if !has(c.HasTenant(ctx, tenant)) || has(c.HasTenant(ctx, nowhere)) {
		t.Error("want the tenant that exists, and only that")
	}
	if !has(c.HasTarget(ctx, vnf)) || has(c.HasTarget(ctx, aai.RelationshipToVFModule("vnf-1", "none"))) {
		t.Error("want the VNF that exists, and only that")
	}
}

func TestBulkWrite(t *testing.T) {
	s, url := simulate(t, simulator.Options{})
	c, ctx := connect(t, url), t.Context()
	if err := c.BulkWrite(ctx, []client.Write{
		{Op: aai.OpPut, Key: key, Document: document(key.ID)},
		{Op: aai.OpRelate, Key: key, Relationship: vnf},
		{Op: aai.OpPut, Key: other("b"), Document: document("b")},
	}); err != nil {
		t.Fatal(err)
	}
	d, _, err := c.GetK8sResource(ctx, key)
	if err != nil || len(d.RelationshipList.Relationships) != 1 || d.RelationshipList.Relationships[0].Target() != vnf.Target() {
		t.Fatalf("%+v, %v", d, err)
	}
	b, _, err := c.GetK8sResource(ctx, other("b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.BulkWrite(client.WithTransaction(ctx, "together-1"), []client.Write{
		{Op: aai.OpUpdate, Key: key, Document: inVersion(d.ResourceVersion, "hs/status=Failed")},
		{Op: aai.OpUnrelate, Key: key, Relationship: vnf},
		{Op: aai.OpDelete, Key: other("b"), ResourceVersion: b.ResourceVersion},
	}); err != nil {
		t.Fatal(err)
	}
	if requests := s.Requests(); requests[len(requests)-1].Header.Get("X-TransactionId") != "together-1" {
		t.Errorf("got %+v, want the transaction id together-1", requests[len(requests)-1])
	}
	list, err := c.ListK8sResources(ctx, tenant, "healthscope-lab")
	if err != nil || len(list) != 1 || list[0].Labels[0] != "hs/status=Failed" || list[0].RelationshipList.Relationships != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestModules(t *testing.T) {
	s, url := simulate(t, simulator.Options{})
	c := connect(t, url)
	in, out := aai.VFModule{GenericVNFID: "vnf-1", ID: "in service"}, aai.VFModule{GenericVNFID: "vnf-1", ID: "b"}
	for module, body := range map[aai.VFModule]map[string]any{
		in: {"operational-status": "in-service-path", "selflink": "x", "resource-version": "17"}, out: {"resource-version": "18"},
	} {
		if err := s.Seed(simulator.Fixture{URI: module.Path(), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(want map[aai.VFModule]aai.VFModuleStatus) {
		t.Helper()
		got, err := c.ListVFModules(t.Context(), "vnf-1")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
	}
	list(map[aai.VFModule]aai.VFModuleStatus{in: {Status: aai.InServicePath, ResourceVersion: "17"}, out: {ResourceVersion: "18"}})
	if err := c.SetOperationalStatus(t.Context(), in, aai.OutOfServicePath, "17"); err != nil {
		t.Fatal(err)
	}
	doc, _ := s.Get(in.Path())
	version, _ := doc["resource-version"].(string)
	list(map[aai.VFModule]aai.VFModuleStatus{in: {Status: aai.OutOfServicePath, ResourceVersion: version}, out: {ResourceVersion: "18"}})
	if doc["selflink"] != "x" {
		t.Errorf("more has changed than the status: %v", doc)
	}
}
