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
