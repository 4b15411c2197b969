package scope

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// checkBounds fails the test if a status exceeds its size limits.
func checkBounds(t interface {
	Helper()
	Errorf(format string, args ...any)
}, s corev1alpha2.HealthScopeStatus) {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil || len(data) > 64<<10 {
		t.Errorf("the status has %d bytes (error %v)", len(data), err)
	}
	if n := len(s.HealthConditions); n > 200 {
		t.Errorf("%d healthConditions", n)
	}
	if n := len(s.Culprits); n > 50 {
		t.Errorf("%d culprits", n)
	}
	for _, a := range s.Apps {
		if n := len(a.Clusters); n > 100 {
			t.Errorf("%d clusters in app %q", n, a.Name)
		}
	}
}

func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 50)
	cases := map[string]struct {
		refs, members, clusters int
		message                 string
		failed                  int
		wantCulprits            int
		wantTruncated           bool
	}{
		"Small":           {refs: 3, members: 5, clusters: 1, wantTruncated: false},
		"ManyRefs":        {refs: 1000, members: 5, clusters: 1, wantTruncated: true},
		"ManyRefsFailing": {refs: 1000, members: 5, clusters: 1, failed: 5000, message: long, wantCulprits: 50, wantTruncated: true},
		"ManyClusters":    {refs: 1, members: 2, clusters: 500, failed: 7, wantCulprits: 7, wantTruncated: true},
		"FiftyCulprits":   {refs: 1, members: 100, clusters: 1, failed: 50, wantCulprits: 50, wantTruncated: false},
		"OneCulpritMore":  {refs: 1, members: 100, clusters: 1, failed: 51, wantCulprits: 50, wantTruncated: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w world
			var spec corev1alpha2.HealthScopeSpec
			failures := c.failed
			for cluster := range c.clusters {
				w.clusters = append(w.clusters, fmt.Sprintf("acme+edge%03d", cluster))
			}
			for r := range c.refs {
				name := fmt.Sprintf("171887448792644816-app%04d", r)
				spec.WorkloadReferences = append(spec.WorkloadReferences, bundleRef(name))
				for _, cluster := range w.clusters {
					b := bundleOf(cluster, name)
					for m := range c.members {
						state, reason := healthscope.Ready, healthscope.Reason("")
						if failures > 0 {
							state, reason, failures = healthscope.Failed, "CrashLoopBackOff", failures-1
						}
						one := member(cluster, "Deployment", fmt.Sprintf("app%04d-%04d", r, m), state, reason)
						one.Message = c.message
						b.Members = append(b.Members, one)
					}
					w.bundles = append(w.bundles, b)
				}
			}
			s := statusIn(w, scopeOf(spec), noon)
			checkBounds(t, s)
			total := c.refs * c.members * c.clusters
			want := corev1alpha2.MemberCounts{State: "Ready", Total: int32(total), Ready: int32(total - c.failed), Failed: int32(c.failed)}
			if c.failed > 0 {
				want.State = "Failed"
			}
			if s.Summary != want || s.ScopeHealthCondition.Total != int64(c.refs) || s.ResourcesReady != fmt.Sprintf("%d/%d", total-c.failed, total) {
				t.Errorf("counts are exact whatever is cut: want %+v of %d references, got %+v of %d", want, c.refs, s.Summary, s.ScopeHealthCondition.Total)
			}
			if s.ClustersReachable != fmt.Sprintf("%d/%d", c.clusters, c.clusters) {
				t.Errorf("clusters: got %s", s.ClustersReachable)
			}
			if len(s.Culprits) != c.wantCulprits || s.Truncated != c.wantTruncated {
				t.Errorf("want %d culprits, truncated %t; got %d, %t", c.wantCulprits, c.wantTruncated, len(s.Culprits), s.Truncated)
			}
		})
	}
}

func TestStatusIsBoundedWithLongNames(t *testing.T) {
	t.Parallel()
	// The schema has no limit for the fields of a reference, because OAM's has none.
	huge := strings.Repeat("x", 40<<10)
	spec := corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))}
	for _, field := range []string{"a", "b", "c"} {
		spec.WorkloadReferences = append(spec.WorkloadReferences, corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "Pod", Name: field + huge})
		spec.Apps = append(spec.Apps, corev1alpha2.ScopeApp{Name: field + strings.Repeat("x", 250), WorkloadReferences: refs(at(field+huge, deploymentRef("web")))})
	}
	s := statusIn(withDeployments(deployment("web", healthscope.Ready, 1, 1)), scopeOf(spec), noon)
	checkBounds(t, s)
	if want := (corev1alpha2.MemberCounts{State: "Unknown", Total: 7, Ready: 1, Unknown: 6}); s.Summary != want || !s.Truncated {
		t.Errorf("want %+v and truncated, got %+v and %t", want, s.Summary, s.Truncated)
	}
	if len(s.FirstCulprit) > maxLine {
		t.Errorf("the first culprit is no line: %d bytes", len(s.FirstCulprit))
	}
}

func TestTruncationKeepsTheWorst(t *testing.T) {
	t.Parallel()
	var members []healthscope.Member
	for n := range 300 {
		members = append(members, member(hub, "Deployment", fmt.Sprintf("p%03d", n), healthscope.Pending, healthscope.ReasonReplicasNotReady))
	}
	members = append(members, member(hub, "Deployment", "z", healthscope.Failed, "CrashLoopBackOff"), member(hub, "Deployment", "u", healthscope.Unknown, healthscope.ReasonForbidden))
	w := world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", members...)}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-sink"))}), noon)
	var got []string
	for _, c := range s.Culprits[:3] {
		got = append(got, c.State+" "+c.Name)
	}
	if want := "Failed z, Unknown u, Pending p000"; strings.Join(got, ", ") != want {
		t.Errorf("want %s, got %s", want, strings.Join(got, ", "))
	}
}

// TestTruncationKeepsCulprits: the clusters of apps are cut before the culprits, which say what to repair.
func TestTruncationKeepsCulprits(t *testing.T) {
	t.Parallel()
	var w world
	var spec corev1alpha2.HealthScopeSpec
	for cluster := range 100 {
		w.clusters = append(w.clusters, fmt.Sprintf("acme+edge%03d", cluster))
	}
	for app := range 60 {
		name := fmt.Sprintf("app-%02d", app)
		spec.Apps = append(spec.Apps, corev1alpha2.ScopeApp{Name: name, WorkloadReferences: refs(bundleRef(name))})
		for _, cluster := range w.clusters {
			w.bundles = append(w.bundles, bundleOf(cluster, name, member(cluster, "Deployment", name, healthscope.Failed, "CrashLoopBackOff")))
		}
	}
	s := statusIn(w, scopeOf(spec), noon)
	checkBounds(t, s)
	if len(s.Culprits) != corev1alpha2.MaxCulprits || len(s.Apps) != 60 || len(s.Apps[0].Clusters) < 10 || !s.Truncated {
		t.Errorf("%d culprits, %d apps with %d clusters are left, truncated is %t", len(s.Culprits), len(s.Apps), len(s.Apps[0].Clusters), s.Truncated)
	}
}

// TestTruncationDropsAppHealthConditionsFirst: the list for KubeVela repeats what other fields contain. It is truncated before
// them.
func TestTruncationDropsAppHealthConditionsFirst(t *testing.T) {
	t.Parallel()
	var references []corev1alpha2.AppReference
	for n := range 2 * corev1alpha2.MaxHealthConditions {
		references = append(references, corev1alpha2.AppReference{AppName: fmt.Sprintf("app-%03d-%s", n, strings.Repeat("x", 100)), CompReferences: []corev1alpha2.CompReference{
			{CompName: "c", Workload: deploymentRef(fmt.Sprintf("web-%03d", n))},
		}})
	}
	for apps, want := range map[int]struct {
		all       bool
		truncated bool
	}{3: {true, false}, 150: {false, true}, len(references): {false, true}} {
		got := statusIn(withDeployments(), scopeOf(corev1alpha2.HealthScopeSpec{AppReferences: references[:apps]}), noon)
		if tooBig(&got) || got.Truncated != want.truncated || (len(got.AppHealthConditions) == apps) != want.all {
			t.Errorf("of %d Applications %d are named; truncated is %t", apps, len(got.AppHealthConditions), got.Truncated)
		}
		if n := len(got.HealthConditions); n < min(apps, 10) {
			t.Errorf("of %d references %d are named", apps, n)
		}
	}
}
