package aai_test

import (
	"net/url"
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
)

func TestPathsAndNames(t *testing.T) {
	const region = "/cloud-infrastructure/cloud-regions/cloud-region/"
	plain := aai.Tenant{CloudOwner: "k8scloudowner4", CloudRegionID: "k8sregionone", TenantID: "3444a2a0"}
	odd := aai.Tenant{CloudOwner: "a/b", CloudRegionID: "r:1=ü@[`{", TenantID: "t t+azAZ09-._~"}
	cases := map[string]struct{ got, want string }{
		"tenant":           {plain.Path(), region + "k8scloudowner4/k8sregionone/tenants/tenant/3444a2a0"},
		"container":        {plain.ResourcesPath(), region + "k8scloudowner4/k8sregionone/tenants/tenant/3444a2a0/k8s-resources"},
		"resource":         {aai.Key{Tenant: plain, ID: "13dd"}.Path(), region + "k8scloudowner4/k8sregionone/tenants/tenant/3444a2a0/k8s-resources/k8s-resource/13dd"},
		"canonical tenant": {odd.Path(), region + "a%2Fb/r%3A1%3D%C3%BC%40%5B%60%7B/tenants/tenant/t%20t%2BazAZ09-._~"},
		"tenant's name":    {plain.String(), "k8scloudowner4/k8sregionone/3444a2a0"},
		"vnf":              {aai.RelationshipToGenericVNF("vnf:1").RelatedLink, "/network/generic-vnfs/generic-vnf/vnf%3A1"},
		"vnf's name":       {aai.RelationshipToGenericVNF("vnf:1").String(), `generic-vnf "vnf:1"`},
		"module's name":    {aai.RelationshipToVFModule("v", "m/2").String(), `vf-module "m/2"`},
		"undecodable name": {aai.Relationship{RelatedTo: "vf-module", RelatedLink: "/x/m%"}.String(), `vf-module "m%"`},
		"scope":            {aai.ScopeSelflink("http://x/", "ns", "a/b"), "http://x/scopes/ns/a%2Fb"},
		"scopes":           {aai.ScopesSelflink("http://x/", "n:s"), "http://x/scopes?namespace=n%3As"},
		"all scopes":       {aai.ScopesSelflink("http://x/", ""), "http://x/scopes"},
		"module":           {aai.RelationshipToVFModule("v", "m/2").RelatedLink, "/network/generic-vnfs/generic-vnf/v/vf-modules/vf-module/m%2F2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

func TestEscapeIsCanonicalAndReversible(t *testing.T) {
	canonical := regexp.MustCompile(`^([A-Za-z0-9\-._~]|%[0-9A-F]{2})*$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a:=/%+@&$ ~.-_é")))).Draw(t, "segment")
		escaped := aai.Escape(s)
		if !canonical.MatchString(escaped) {
			t.Fatalf("%q is not canonical", escaped)
		}
		if back, err := url.PathUnescape(escaped); err != nil || back != s {
			t.Fatalf("%q comes back as %q, %v", s, back, err)
		}
	})
}

func TestCompareSortsByEveryField(t *testing.T) {
	key := func(o, r, tenant, id string) aai.Key {
		return aai.Key{Tenant: aai.Tenant{CloudOwner: o, CloudRegionID: r, TenantID: tenant}, ID: id}
	}
	sorted := []aai.Key{key("a", "b", "b", "b"), key("b", "a", "b", "b"), key("b", "b", "a", "b"), key("b", "b", "b", "a"), key("b", "b", "b", "b")}
	for i := range sorted {
		for j := range sorted {
			if got := sorted[i].Compare(sorted[j]); got != min(max(i-j, -1), 1) {
				t.Errorf("%v compared with %v is %d", sorted[i], sorted[j], got)
			}
		}
	}
}

func TestTarget(t *testing.T) {
	cases := map[string]struct{ link, want string }{
		"as A&AI answers":   {"/aai/v32/network/generic-vnfs/generic-vnf/vnf-1", "/network/generic-vnfs/generic-vnf/vnf-1"},
		"without version":   {"/network/generic-vnfs/generic-vnf/vnf-1", "/network/generic-vnfs/generic-vnf/vnf-1"},
		"without slash":     {"network/generic-vnfs/generic-vnf/vnf-1", "/network/generic-vnfs/generic-vnf/vnf-1"},
		"lower-case hex":    {"/network/generic-vnfs/generic-vnf/a%3ab", "/network/generic-vnfs/generic-vnf/a%3Ab"},
		"bare character":    {"/network/generic-vnfs/generic-vnf/a:b", "/network/generic-vnfs/generic-vnf/a%3Ab"},
		"not decodable":     {"/network/generic-vnfs/generic-vnf/a%", "/network/generic-vnfs/generic-vnf/a%"},
		"no schema version": {"/aai/vX/network", "/aai/vX/network"},
		"no version at all": {"/aai/32/network", "/aai/32/network"},
		"no number":         {"/aai/v/network", "/aai/v/network"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (aai.Relationship{RelatedLink: c.link}).Target(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
