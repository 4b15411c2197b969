package mapping_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

var since = time.Date(2026, 11, 20, 11, 22, 33, 999, time.FixedZone("CET", 3600))

func options() mapping.Options {
	return mapping.Options{
		Installation: "lab",
		LabelPrefix:  "hs/",
		LabelKeys:    []string{"app"},
		SelflinkBase: "https://status.example",
		Kinds:        []string{"Deployment.apps", "Pod", "Secret"},
		Regions: []configv1alpha1.Region{
			{Cluster: "p+edge", Namespace: "vfw", CloudOwner: "o", CloudRegionID: "special", TenantID: "t-vfw"},
			{Cluster: "p+edge", Namespace: "*", CloudOwner: "o", CloudRegionID: "edge", TenantID: "t"},
			{Cluster: "*", Namespace: "shared", CloudOwner: "o", CloudRegionID: "any", TenantID: "t"},
			{Cluster: "r+edge1?", Namespace: "vfw-*", CloudOwner: "o", CloudRegionID: "teens", TenantID: "t"},
			{Cluster: "r+edge*", Namespace: "*", CloudOwner: "o", CloudRegionID: "edge", TenantID: "t"},
			{Cluster: "r+[", Namespace: "*", CloudOwner: "o", CloudRegionID: "odd", TenantID: "t"},
			{Cluster: "p+edge", Namespace: "vfw", CloudOwner: "o", CloudRegionID: "special", TenantID: "former"},
		},
		Links: []configv1alpha1.LinkPolicy{
			{Namespace: "vfw", GenericVNFIDs: []string{"vnf-1", "vnf-2"}},
			{Namespace: "lab", GenericVNFIDs: []string{"*"}},
			{Namespace: "*", GenericVNFIDs: []string{"vnf-public"}},
		},
	}
}

// deployment returns a Deployment in the state, with the changes.
func deployment(state healthscope.State, changes ...func(*healthscope.Member)) healthscope.Member {
	m := healthscope.Member{Result: healthscope.Result{
		Key:     healthscope.Key{Cluster: "p+edge", Group: "apps", Kind: "Deployment", Namespace: "vfw", Name: "sink"},
		Version: "v1",
		State:   state,
	}}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func TestMapWritesAWholeDocument(t *testing.T) {
	member := deployment(healthscope.Failed, func(m *healthscope.Member) {
		m.Reason, m.Since, m.Message = healthscope.ReasonProgressDeadlineExceeded, since, "not for A&AI"
		m.Labels = map[string]string{"app": "sink", "secret-plan": "x", "hs/status": "Ready", "hs/team": "red", "status": "mine"}
	})
	o := options()
	o.LabelKeys = append(o.LabelKeys, "hs/status", "hs/team", "status")
	got := mapping.Map(mapping.Resource{
		Member: member, Scope: mapping.Scope{Namespace: "vfw", Name: "fw"}, GenericVNFID: "vnf-1", VFModuleID: "mod-1",
	}, o)
	id := mapping.ID("lab", member.Key)
	want := mapping.Entry{
		Decision: mapping.Write,
		Key:      aai.Key{Tenant: aai.Tenant{CloudOwner: "o", CloudRegionID: "special", TenantID: "t-vfw"}, ID: id},
		Document: aai.Document{
			ID: id, Name: "sink", Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "vfw",
			Labels: []string{
				"app=sink",
				"hs/link=/network/generic-vnfs/generic-vnf/vnf-1",
				"hs/link=/network/generic-vnfs/generic-vnf/vnf-1/vf-modules/vf-module/mod-1",
				"hs/reason=ProgressDeadlineExceeded",
				"hs/since=2026-11-20T10:22:33Z",
				"hs/status=Failed",
				"hs/team=red",
				"status=mine",
			},
			Selflink:   "https://status.example/scopes/vfw/fw",
			DataOwner:  "healthscope-lab",
			DataSource: "p+edge",
			RelationshipList: aai.RelationshipList{Relationships: []aai.Relationship{
				{RelatedTo: "generic-vnf", RelatedLink: "/network/generic-vnfs/generic-vnf/vnf-1"},
				{RelatedTo: "vf-module", RelatedLink: "/network/generic-vnfs/generic-vnf/vnf-1/vf-modules/vf-module/mod-1"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMapStates(t *testing.T) {
	cases := map[healthscope.State]struct {
		decision mapping.Decision
		labels   []string
	}{
		healthscope.Ready:       {mapping.Write, []string{"hs/status=Ready"}},
		healthscope.Pending:     {mapping.Write, []string{"hs/status=Pending"}},
		healthscope.Failed:      {mapping.Write, []string{"hs/status=Failed"}},
		healthscope.Terminating: {mapping.Write, []string{"hs/status=Pending"}},
		healthscope.NotPresent:  {mapping.Remove, nil},
		healthscope.Unknown:     {mapping.Hold, nil},
		"NoSuchState":           {mapping.Hold, nil},
	}
	for state, c := range cases {
		t.Run(string(state), func(t *testing.T) {
			got := mapping.Map(mapping.Resource{Member: deployment(state)}, options())
			if got.Decision != c.decision {
				t.Errorf("decision is %q, want %q", got.Decision, c.decision)
			}
			if diff := cmp.Diff(c.labels, got.Document.Labels); diff != "" {
				t.Errorf("labels, -want +got:\n%s", diff)
			}
			if want := mapping.ID("lab", deployment(state).Key); got.Key.ID != want {
				t.Errorf("id is %q, want %q: what is held or removed must be found", got.Key.ID, want)
			}
		})
	}
}

func TestMapChoosesKindsAndTenants(t *testing.T) {
	at := func(cluster, group, kind, namespace string) healthscope.Key {
		return healthscope.Key{Cluster: cluster, Group: group, Kind: kind, Namespace: namespace, Name: "x"}
	}
	cases := map[string]struct {
		key      healthscope.Key
		decision mapping.Decision
		region   string
	}{
		"first region that matches":       {at("p+edge", "", "Pod", "vfw"), mapping.Write, "special"},
		"any namespace":                   {at("p+edge", "", "Pod", "shared"), mapping.Write, "edge"},
		"any cluster":                     {at("q+far", "", "Pod", "shared"), mapping.Write, "any"},
		"cluster-scoped goes to any":      {at("p+edge", "", "Pod", ""), mapping.Write, "edge"},
		"no region":                       {at("q+far", "", "Pod", "vfw"), mapping.Unmapped, ""},
		"kind in its group":               {at("p+edge", "apps", "Deployment", "vfw"), mapping.Write, "special"},
		"same kind in another group":      {at("p+edge", "extensions", "Deployment", "vfw"), mapping.Exclude, ""},
		"core kind in another group":      {at("p+edge", "example.org", "Pod", "vfw"), mapping.Exclude, ""},
		"kind that is not listed":         {at("p+edge", "", "ConfigMap", "vfw"), mapping.Exclude, ""},
		"secrets never go, though listed": {at("p+edge", "", "Secret", "vfw"), mapping.Exclude, ""},
		"patterns":                        {at("r+edge12", "", "Pod", "vfw-1"), mapping.Write, "teens"},
		"namespace outside a pattern":     {at("r+edge12", "", "Pod", "other"), mapping.Write, "edge"},
		"cluster outside a pattern":       {at("r+edge1", "", "Pod", "vfw-1"), mapping.Write, "edge"},
		"a pattern that matches nothing":  {at("r+edge", "", "Pod", "vfw"), mapping.Write, "edge"},
		"no pattern matches":              {at("r+core", "", "Pod", "vfw-1"), mapping.Unmapped, ""},
		"an invalid pattern is a name":    {at("r+[", "", "Pod", "vfw-1"), mapping.Write, "odd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			member := healthscope.Member{Result: healthscope.Result{Key: c.key, State: healthscope.Ready}}
			got := mapping.Map(mapping.Resource{Member: member}, options())
			if got.Decision != c.decision || got.Key.Tenant.CloudRegionID != c.region {
				t.Errorf("got %q in region %q, want %q in %q", got.Decision, got.Key.Tenant.CloudRegionID, c.decision, c.region)
			}
		})
	}
}

func TestMapLinksOnlyWhatIsAllowed(t *testing.T) {
	cases := map[string]struct {
		namespace, vnf, module string
		links                  int
		denied                 bool
	}{
		"no VNF":                         {namespace: "vfw"},
		"a module without a VNF":         {namespace: "vfw", module: "mod-1"},
		"allowed by name":                {namespace: "vfw", vnf: "vnf-2", links: 1},
		"allowed, with module":           {namespace: "vfw", vnf: "vnf-2", module: "mod-1", links: 2},
		"not allowed":                    {namespace: "vfw", vnf: "vnf-3", module: "mod-1", denied: true},
		"any VNF":                        {namespace: "lab", vnf: "vnf-3", links: 1},
		"any namespace":                  {namespace: "elsewhere", vnf: "vnf-public", links: 1},
		"other namespace's VNF":          {namespace: "elsewhere", vnf: "vnf-1", denied: true},
		"allowed by an entry further on": {namespace: "vfw", vnf: "vnf-public", links: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := mapping.Map(mapping.Resource{
				Member: deployment(healthscope.Ready), Scope: mapping.Scope{Namespace: c.namespace, Name: "s"}, GenericVNFID: c.vnf, VFModuleID: c.module,
			}, options())
			if got.Decision != mapping.Write || got.LinkDenied != c.denied || len(got.Document.RelationshipList.Relationships) != c.links {
				t.Errorf("got %q with %d links, denied %t; want %d, %t", got.Decision, len(got.Document.RelationshipList.Relationships), got.LinkDenied, c.links, c.denied)
			}
		})
	}
}

func TestSelflink(t *testing.T) {
	clusterScoped := deployment(healthscope.Ready, func(m *healthscope.Member) { m.Namespace = "" })
	cases := map[string]struct {
		resource mapping.Resource
		want     string
	}{
		"scope":          {mapping.Resource{Member: deployment(healthscope.Ready), Scope: mapping.Scope{Namespace: "a", Name: "b"}}, "https://status.example/scopes/a/b"},
		"no scope":       {mapping.Resource{Member: deployment(healthscope.Ready)}, "https://status.example/scopes?namespace=vfw"},
		"cluster-scoped": {mapping.Resource{Member: clusterScoped}, "https://status.example/scopes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.SelflinkBase += "/"
			if got := mapping.Map(c.resource, o).Document.Selflink; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTenantsAreAllThatAreConfigured includes a former tenant whose region entry matches no resource any more. Documents that
// remain there can then be found.
func TestTenantsAreAllThatAreConfigured(t *testing.T) {
	want := []aai.Tenant{
		{CloudOwner: "o", CloudRegionID: "any", TenantID: "t"},
		{CloudOwner: "o", CloudRegionID: "edge", TenantID: "t"},
		{CloudOwner: "o", CloudRegionID: "odd", TenantID: "t"},
		{CloudOwner: "o", CloudRegionID: "special", TenantID: "former"},
		{CloudOwner: "o", CloudRegionID: "special", TenantID: "t-vfw"},
		{CloudOwner: "o", CloudRegionID: "teens", TenantID: "t"},
	}
	if diff := cmp.Diff(want, options().Tenants()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFromConfig(t *testing.T) {
	c := configv1alpha1.Configuration{Inventory: &configv1alpha1.Inventory{URL: "https://aai", Regions: []configv1alpha1.Region{{Cluster: "*", CloudOwner: "o", CloudRegionID: "r", TenantID: "t"}}}}
	configv1alpha1.SetDefaults(&c)
	o := mapping.FromConfig(c.Inventory, c.Monitor.AllowedLabels)
	got := mapping.Map(mapping.Resource{Member: deployment(healthscope.Ready, func(m *healthscope.Member) {
		m.Labels = map[string]string{"app.kubernetes.io/name": "fw"}
	})}, o)
	want := aai.Document{
		ID: got.Key.ID, Name: "sink", Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "vfw",
		Labels:   []string{"app.kubernetes.io/name=fw", "healthscope.core.oam.dev/status=Ready"},
		Selflink: "http://healthscope/scopes?namespace=vfw", DataOwner: "healthscope-default", DataSource: "p+edge",
	}
	if diff := cmp.Diff(want, got.Document); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestIDNeverChanges compares an id with a constant. Ids are stored in inventories that outlive this program, so they must never
// change.
func TestIDNeverChanges(t *testing.T) {
	key := healthscope.Key{Cluster: "provider+edge01", Group: "apps", Kind: "Deployment", Namespace: "default", Name: "fw0-sink"}
	// Another program computed this: SHA-256 over each field, prefixed with its length as 8 bytes, big-endian.
	const want = "f4b7c5b2eb33c8835bec1867f1e61e02684db8a5a8f8da9da243cf82ba42f4a7"
	if got := mapping.ID("default", key); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIDDependsOnTheKeyAlone(t *testing.T) {
	word := rapid.StringMatching(`[a-c]{0,2}`)
	fields := rapid.Custom(func(t *rapid.T) [6]string {
		return [6]string{word.Draw(t, "installation"), word.Draw(t, "cluster"), word.Draw(t, "group"), word.Draw(t, "kind"), word.Draw(t, "namespace"), word.Draw(t, "name")}
	})
	id := func(f [6]string) string {
		return mapping.ID(f[0], healthscope.Key{Cluster: f[1], Group: f[2], Kind: f[3], Namespace: f[4], Name: f[5]})
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := fields.Draw(t, "a"), fields.Draw(t, "b")
		if (id(a) == id(b)) != (a == b) {
			t.Fatalf("ids of %q and %q: %s and %s", a, b, id(a), id(b))
		}
	})
}

func TestMapIgnoresWhatDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := func(m *healthscope.Member) {
			m.UID = rapid.String().Draw(t, "uid")
			m.Message = rapid.String().Draw(t, "message")
			m.Cause = rapid.String().Draw(t, "cause")
			m.Owned = rapid.Bool().Draw(t, "owned")
			m.Labels = map[string]string{"pod-template-hash": rapid.String().Draw(t, "hash")}
			m.Replicas = &healthscope.Replicas{Ready: rapid.Int32().Draw(t, "ready")}
		}
		want := mapping.Map(mapping.Resource{Member: deployment(healthscope.Pending)}, options())
		got := mapping.Map(mapping.Resource{Member: deployment(healthscope.Pending, change)}, options())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// TestLabelsAreBoundedAndPrintable maps a reason and a label of any length, with any characters. Another project's monitor may
// write them.
func TestLabelsAreBoundedAndPrintable(t *testing.T) {
	member := deployment(healthscope.Failed, func(m *healthscope.Member) {
		m.Reason = healthscope.Reason(strings.Repeat("x", 10000))
		m.Labels = map[string]string{"app": "\x1b[31m\n" + strings.Repeat("y", 10000)}
	})
	labels := mapping.Map(mapping.Resource{Member: member}, options()).Document.Labels
	if len(labels) != 3 {
		t.Errorf("%d labels", len(labels))
	}
	for _, label := range labels {
		if len(label) > 200 || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the label %q has %d bytes", label, len(label))
		}
	}
}
