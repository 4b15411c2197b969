package scope

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func TestLinkedApps(t *testing.T) {
	t.Parallel()
	web, db := member(hub, "Deployment", "web", healthscope.Ready, ""), member(hub, "StatefulSet", "db", healthscope.Failed, "CrashLoopBackOff")
	app := func(name, vnf, module string, list ...corev1alpha2.WorkloadReference) corev1alpha2.ScopeApp {
		return corev1alpha2.ScopeApp{Name: name, WorkloadReferences: list, Inventory: &corev1alpha2.InventoryLinks{GenericVNFID: vnf, VFModuleID: module}}
	}
	linked := func(module string, s healthscope.Summary) LinkedApp {
		return LinkedApp{Links: corev1alpha2.InventoryLinks{GenericVNFID: "vnf", VFModuleID: module}, Summary: s}
	}
	both := []*fleet.Bundle{bundleOf(hub, "1-web", web, owned(member(hub, "Pod", "web-1", healthscope.Failed, "x"))), bundleOf(hub, "1-db", db), bundleOf(hub, "1-all", web, db)}
	cases := map[string]struct {
		spec    corev1alpha2.HealthScopeSpec
		bundles []*fleet.Bundle
		want    []LinkedApp
	}{
		"none": {spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "a", WorkloadReferences: refs(bundleRef("1-web"))}}}, bundles: both},
		"each app by itself": {
			spec:    corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("b", "vnf", "m-b", bundleRef("1-db")), app("a", "vnf", "m-a", bundleRef("1-web"))}},
			bundles: both, want: []LinkedApp{linked("m-a", counts(1, 1, 0, 0, 0, 1)), linked("m-b", counts(1, 0, 0, 1, 0, 0))},
		},
		"a member of two apps counts in both": {
			spec:    corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("a", "vnf", "m-a", bundleRef("1-db")), app("b", "vnf", "m-b", bundleRef("1-all"), bundleRef("1-db"))}},
			bundles: both, want: []LinkedApp{linked("m-a", counts(1, 0, 0, 1, 0, 0)), linked("m-b", counts(2, 1, 0, 1, 0, 1))},
		},
		"what the roll-up ignores does not count": {
			spec: corev1alpha2.HealthScopeSpec{
				Apps:   []corev1alpha2.ScopeApp{app("a", "vnf", "m-a", bundleRef("1-all"))},
				Rollup: &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "StatefulSet"}}},
			},
			bundles: both, want: []LinkedApp{linked("m-a", counts(1, 1, 0, 0, 0, 1))},
		},
		"what a bundle has no room to name counts": {
			spec:    corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("a", "vnf", "m-a", bundleRef("web"), bundleRef("web"))}},
			bundles: []*fleet.Bundle{truncatedBundle(hub, 3)}, want: []LinkedApp{linked("m-a", counts(1904, 1901, 0, 3, 0, 1901))},
		},
		"a VNF without a module is none": {spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("a", "vnf", "", bundleRef("1-web"))}}, bundles: both},
		"a module without a VNF is none": {spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("a", "", "m", bundleRef("1-web"))}}, bundles: both},
		"an app of which nothing is there": {
			spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app("a", "vnf", "m-a", bundleRef("9-gone"))}},
			want: []LinkedApp{linked("m-a", counts(1, 0, 1, 0, 0, 0))},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judgeIn(world{bundles: c.bundles}, scopeOf(c.spec), noon)
			if diff := cmp.Diff(c.want, v.LinkedApps); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
