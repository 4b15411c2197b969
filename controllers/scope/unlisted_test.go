package scope

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// truncatedBundle returns a bundle that names one Deployment. It has 1,900 more ready resources and some failed ones only as
// numbers.
func truncatedBundle(cluster string, failed int) *fleet.Bundle {
	b := bundleOf(cluster, "web", member(cluster, "Deployment", "web", healthscope.Ready, ""))
	b.Own, b.Truncated = true, true
	b.Unlisted = healthscope.Summary{Total: 1900 + failed, Ready: 1900, Healthy: 1900, Failed: failed}
	return b
}

func TestATruncatedBundleIsCountedExactly(t *testing.T) {
	t.Parallel()
	named := func(name string, list ...corev1alpha2.WorkloadReference) corev1alpha2.ScopeApp {
		return corev1alpha2.ScopeApp{Name: name, WorkloadReferences: list}
	}
	percent := func(n int32, required ...string) *corev1alpha2.Rollup {
		return &corev1alpha2.Rollup{HealthyPercentage: &n, Required: required}
	}
	cases := map[string]struct {
		bundles []*fleet.Bundle
		spec    corev1alpha2.HealthScopeSpec
		health  corev1alpha2.Health
		ready   string
		summary corev1alpha2.MemberCounts
		apps    []corev1alpha2.AppStatus
		first   string
	}{
		"all ready": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 0)}, spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web"))},
			health: corev1alpha2.Healthy, ready: "1901/1901", summary: corev1alpha2.MemberCounts{State: "Ready", Total: 1901, Ready: 1901},
			apps: []corev1alpha2.AppStatus{{State: "Ready", Total: 1901, Ready: 1901, Clusters: []corev1alpha2.ClusterStatus{{Name: hub, State: "Ready", Total: 1901, Ready: 1901}}}},
		},
		"some failed that have no name": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 3)}, spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web"))},
			health: corev1alpha2.Unhealthy, ready: "1901/1904", summary: corev1alpha2.MemberCounts{State: "Failed", Total: 1904, Ready: 1901, Failed: 3},
			apps:  []corev1alpha2.AppStatus{{State: "Failed", Total: 1904, Ready: 1901, Clusters: []corev1alpha2.ClusterStatus{{Name: hub, State: "Failed", Total: 1904, Ready: 1901}}}},
			first: "resources that their bundle has no room to name",
		},
		"some failed, and a percentage": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 3)}, spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web")), Rollup: percent(99)},
			health: corev1alpha2.Healthy, ready: "1901/1904", summary: corev1alpha2.MemberCounts{State: "Failed", Total: 1904, Ready: 1901, Failed: 3},
			apps:  []corev1alpha2.AppStatus{{State: "Failed", Total: 1904, Ready: 1901, Clusters: []corev1alpha2.ClusterStatus{{Name: hub, State: "Failed", Total: 1904, Ready: 1901}}}},
			first: "resources that their bundle has no room to name",
		},
		"some failed in a required app": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 3)}, spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{named("shop", bundleRef("web"))}, Rollup: percent(50, "shop")},
			health: corev1alpha2.Unhealthy, ready: "1901/1904", summary: corev1alpha2.MemberCounts{State: "Failed", Total: 1904, Ready: 1901, Failed: 3},
			apps:  []corev1alpha2.AppStatus{{Name: "shop", State: "Failed", Total: 1904, Ready: 1901, Clusters: []corev1alpha2.ClusterStatus{{Name: hub, State: "Failed", Total: 1904, Ready: 1901}}}},
			first: "resources that their bundle has no room to name",
		},
		"two apps that lead to one bundle": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 0)}, spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web")), Apps: []corev1alpha2.ScopeApp{named("b", bundleRef("web")), named("a", bundleRef("web"))}},
			health: corev1alpha2.Healthy, ready: "1901/1901", summary: corev1alpha2.MemberCounts{State: "Ready", Total: 1901, Ready: 1901},
			apps: []corev1alpha2.AppStatus{
				{Name: "a", State: "Ready", Total: 1901, Ready: 1901, Clusters: []corev1alpha2.ClusterStatus{{Name: hub, State: "Ready", Total: 1901, Ready: 1901}}},
				{Name: "b", State: "Ready"},
			},
		},
		"one bundle in two clusters": {
			bundles: []*fleet.Bundle{truncatedBundle(hub, 0), truncatedBundle(edge1, 1)}, spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web"))},
			health: corev1alpha2.Unhealthy, ready: "3802/3803", summary: corev1alpha2.MemberCounts{State: "Failed", Total: 3803, Ready: 3802, Failed: 1},
			apps: []corev1alpha2.AppStatus{{State: "Failed", Total: 3803, Ready: 3802, Clusters: []corev1alpha2.ClusterStatus{
				{Name: edge1, State: "Failed", Total: 1902, Ready: 1901}, {Name: hub, State: "Ready", Total: 1901, Ready: 1901},
			}}},
			first: "resources that their bundle has no room to name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{clusters: []string{hub, edge1}, bundles: tc.bundles}
			s := statusIn(w, scopeOf(tc.spec), noon)
			got := corev1alpha2.HealthScopeStatus{Health: s.Health, ResourcesReady: s.ResourcesReady, Summary: s.Summary, Apps: s.Apps, FirstCulprit: s.FirstCulprit, Truncated: s.Truncated}
			want := corev1alpha2.HealthScopeStatus{Health: tc.health, ResourcesReady: tc.ready, Summary: tc.summary, Apps: tc.apps, FirstCulprit: tc.first, Truncated: true}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if v := judgeIn(w, scopeOf(tc.spec), noon); !slices.Contains(v.Partial, hub) {
				t.Errorf("there may be more than is known in %q, want it in the cluster of the bundle", v.Partial)
			}
			if c := s.HealthConditions[0]; (c.HealthStatus == corev1alpha2.StatusHealthy) != (tc.summary.Failed == 0) {
				t.Errorf("OAM's condition is %+v", c)
			}
		})
	}
}

func TestABundleWithRoomForNoNameIsNotEmpty(t *testing.T) {
	t.Parallel()
	b := truncatedBundle(hub, 0)
	b.Members = nil
	s := statusIn(world{bundles: []*fleet.Bundle{b}}, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("web"))}), noon)
	if s.ResourcesReady != "1900/1900" || s.Health != corev1alpha2.Healthy || len(s.Culprits) > 0 || s.ClustersReachable != "1/1" {
		t.Errorf("%s, %s, culprits %+v, clusters %s", s.Health, s.ResourcesReady, s.Culprits, s.ClustersReachable)
	}
	if c := only(t, s.HealthConditions); c.Diagnosis != "Ready:1900/1900 " {
		t.Errorf("diagnosis %q", c.Diagnosis)
	}
}

func TestMetricsCountWhatHasNoName(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	judgeInto(registry, world{bundles: []*fleet.Bundle{truncatedBundle(hub, 3)}}, scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "shop", WorkloadReferences: refs(bundleRef("web"))}}}))
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(NewCollector(registry))
	want := `# HELP healthscope_scope_resources The members that count, by app and state. A state without members has no series.
# TYPE healthscope_scope_resources gauge
healthscope_scope_resources{app="shop",namespace="shop",scope="vfw",state="Failed"} 3
healthscope_scope_resources{app="shop",namespace="shop",scope="vfw",state="Ready"} 1901
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "healthscope_scope_resources"); err != nil {
		t.Error(err)
	}
}

// TestMembersOfOtherNamespacesAreKeptApart: bundles in trusted namespaces hold objects of other namespaces, and objects without
// a namespace. Each of them is a separate member.
func TestMembersOfOtherNamespacesAreKeptApart(t *testing.T) {
	t.Parallel()
	elsewhere := func(namespace string, state healthscope.State) healthscope.Member {
		m := member(hub, "Deployment", "web", state, "")
		m.Namespace = namespace
		return m
	}
	w := withDeployments(deployment("web", healthscope.Ready, 3, 3))
	w.bundles = []*fleet.Bundle{bundleOf(hub, "7-web", elsewhere("shop", healthscope.Pending), elsewhere("back", healthscope.Failed), elsewhere("", healthscope.Unknown))}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("7-web"), deploymentRef("web"))}), noon)
	if s.ResourcesReady != "0/3" {
		t.Errorf("%s: the Deployment that is referred to is the one of the scope's own namespace, and no other", s.ResourcesReady)
	}
	var got []string
	for _, c := range s.Culprits {
		got = append(got, c.State+" "+c.Namespace+"/"+c.Name)
	}
	if diff := cmp.Diff([]string{"Failed back/web", "Unknown /web", "Pending shop/web"}, got); diff != "" {
		t.Errorf("culprits -want +got:\n%s", diff)
	}
}

// TestStatusIsStableWhenClockJumps: a clock that jumps forward and back changes a status only when it jumps. A state with a
// begin in the future begins now.
func TestStatusIsStableWhenClockJumps(t *testing.T) {
	t.Parallel()
	l := newScopeHistory(deploymentRef("web"), deploymentRef("gone"))
	l.w = withDeployments(deployment("web", healthscope.Pending, 1, 3))
	changes := 0
	before := ""
	look := func(now time.Time) corev1alpha2.HealthScopeStatus {
		s := l.judge(healthscope.DefaultPolicy(), now)
		if text := wire(t, s); text != before {
			changes++
			before = text
		}
		for _, c := range s.Culprits {
			if c.Since.After(now) {
				t.Errorf("at %s: %s is so since %s", now, c.Name, c.Since)
			}
		}
		return s
	}
	for _, jump := range []time.Duration{0, time.Hour, 0, -time.Hour, 0} {
		for i := range 20 {
			look(noon.Add(jump + time.Duration(i)*100*time.Millisecond))
		}
	}
	if changes > 5 {
		t.Errorf("%d changes for 4 jumps", changes)
	}
}
