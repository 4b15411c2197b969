package client_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

// simulate returns a simulated A&AI with a region, a tenant and a VNF, and its URL. It fails the test if a request violates the
// rules of the simulator's strict mode.
func simulate(t *testing.T, o simulator.Options) (*simulator.Simulator, string) {
	t.Helper()
	o.Strict = true
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

func TestDocumentLifecycle(t *testing.T) {
	_, url := simulate(t, simulator.Options{Users: map[string]string{user: password}})
	c := connect(t, url)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Probe(ctx))
	must(c.Write(ctx, client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}))
	must(c.Write(ctx, client.Write{Op: aai.OpRelate, Key: key, Relationship: vnf}))
	first, _, err := c.GetK8sResource(ctx, key)
	must(err)
	must(c.Write(ctx, client.Write{Op: aai.OpUpdate, Key: key, Document: inVersion(first.ResourceVersion, "team=red", "hs/status=Failed")}))
	if err := c.Write(ctx, client.Write{Op: aai.OpUpdate, Key: key, Document: inVersion(first.ResourceVersion, "hs/status=Failed")}); aai.KindOf(err) != aai.Conflict {
		t.Errorf("update of an old version: %v, want Conflict", err)
	}
	must(c.Write(ctx, client.Write{Op: aai.OpPut, Key: aai.Key{Tenant: tenant, ID: "other"}, Document: func() aai.Document { d := document("other"); d.DataOwner = "else"; return d }()}))

	want := document(key.ID)
	want.Labels = []string{"hs/status=Failed", "team=red"}
	want.RelationshipList.Relationships = []aai.Relationship{
		{RelatedTo: "generic-vnf", Label: "tosca.relationships.HostedOn", RelatedLink: "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1"},
	}
	list, err := c.ListK8sResources(ctx, tenant, "healthscope-lab")
	must(err)
	if diff := cmp.Diff([]aai.Document{want}, list, cmpopts.IgnoreFields(aai.Document{}, "ResourceVersion"), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	must(c.Write(ctx, client.Write{Op: aai.OpUnrelate, Key: key, Relationship: list[0].RelationshipList.Relationships[0]}))
	got, found, err := c.GetK8sResource(ctx, key)
	must(err)
	if !found || got.RelationshipList.Relationships != nil {
		t.Errorf("found %t, relationships %v", found, got.RelationshipList.Relationships)
	}
	if err := c.Write(ctx, client.Write{Op: aai.OpDelete, Key: key, ResourceVersion: list[0].ResourceVersion}); aai.KindOf(err) != aai.Conflict {
		t.Errorf("deletion of an old version: %v, want Conflict", err)
	}
	must(c.Write(ctx, client.Write{Op: aai.OpDelete, Key: key, ResourceVersion: got.ResourceVersion}))
	if _, found, err = c.GetK8sResource(ctx, key); found || err != nil {
		t.Errorf("after the deletion: found %t, %v", found, err)
	}
}

func TestRefusalsOfTheSimulator(t *testing.T) {
	_, url := simulate(t, simulator.Options{Users: map[string]string{user: password}, Versions: []string{"v31", "v32"}})
	c := connect(t, url)
	ctx := t.Context()
	nowhere := aai.Key{Tenant: aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "none"}, ID: "x"}
	linked := document("linked")
	linked.RelationshipList.Relationships = []aai.Relationship{aai.RelationshipToGenericVNF("none")}
	if err := c.Write(ctx, client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}); err != nil {
		t.Fatal(err)
	}
	_, listErr := c.ListK8sResources(ctx, nowhere.Tenant, "x")
	if listErr != nil {
		t.Errorf("list of a tenant that does not exist: %v", listErr)
	}
	cases := map[string]struct {
		err  error
		kind aai.ErrorKind
	}{
		"create twice":        {c.Write(ctx, client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}), aai.Conflict},
		"no tenant":           {c.Write(ctx, client.Write{Op: aai.OpPut, Key: nowhere, Document: document("x")}), aai.MissingDependency},
		"no VNF, in a create": {c.Write(ctx, client.Write{Op: aai.OpPut, Key: aai.Key{Tenant: tenant, ID: "linked"}, Document: linked}), aai.MissingDependency},
		"no VNF":              {c.Write(ctx, client.Write{Op: aai.OpRelate, Key: key, Relationship: aai.RelationshipToGenericVNF("none")}), aai.MissingDependency},
		"update of nothing":   {c.Write(ctx, client.Write{Op: aai.OpUpdate, Key: aai.Key{Tenant: tenant, ID: "13dd1"}, Document: func() aai.Document { d := inVersion("1", "a=b"); d.ID = "13dd1"; return d }()}), aai.Conflict},
		"delete of nothing":   {c.Write(ctx, client.Write{Op: aai.OpDelete, Key: nowhere, ResourceVersion: "1"}), aai.Conflict},
		"no region":           {c.Write(ctx, client.Write{Op: aai.OpRelate, Key: key, Relationship: aai.Relationship{RelatedTo: "cloud-region", RelatedLink: "/cloud-infrastructure/cloud-regions/cloud-region/x/y"}}), aai.MissingDependency},
		"wrong password":      {connect(t, url, func(o *client.Options) { o.Credentials = func() (string, string, error) { return user, "x", nil } }).Probe(ctx), aai.Misconfigured},
		"no password":         {connect(t, url, func(o *client.Options) { o.Credentials = nil }).Probe(ctx), aai.Misconfigured},
		"version not served":  {connect(t, url, func(o *client.Options) { o.SchemaVersion = "v24" }).Probe(ctx), aai.Misconfigured},
		"version unheard of":  {connect(t, url, func(o *client.Options) { o.SchemaVersion = "v99" }).Probe(ctx), aai.Misconfigured},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if e := failure(t, c.err); e.Kind != c.kind || e.Code == "" || e.Message == "" {
				t.Errorf("got %s, code %q: %v; want %s", e.Kind, e.Code, e, c.kind)
			}
		})
	}
}

func TestPagesOfTheSimulator(t *testing.T) {
	s, url := simulate(t, simulator.Options{})
	c := connect(t, url, func(o *client.Options) { o.PageSize = 2; o.Credentials = nil })
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if err := c.Write(t.Context(), client.Write{Op: aai.OpPut, Key: aai.Key{Tenant: tenant, ID: id}, Document: document(id)}); err != nil {
			t.Fatal(err)
		}
	}
	before := len(s.Requests())
	list, err := c.ListK8sResources(t.Context(), tenant, "healthscope-lab")
	if err != nil || len(list) != 5 {
		t.Errorf("%d documents, %v; want 5", len(list), err)
	}
	if n := len(s.Requests()) - before; n != 3 {
		t.Errorf("%d requests, want one for each of 3 pages", n)
	}
}
