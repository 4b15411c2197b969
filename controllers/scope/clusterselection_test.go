package scope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func namedClusters(names ...string) *corev1alpha2.ClusterSelection {
	return &corev1alpha2.ClusterSelection{Names: names}
}

// tenantClusters returns a selection of the clusters of a tenant.
func tenantClusters(tenant string) *corev1alpha2.ClusterSelection {
	return &corev1alpha2.ClusterSelection{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": tenant}}}
}

// TestBundlesAreTakenFromSelectedClusters asserts that a member cannot add its bundles to the scopes of others by labels.
func TestBundlesAreTakenFromSelectedClusters(t *testing.T) {
	t.Parallel()
	tier := map[string]string{"tier": "web"}
	named := map[string]string{corev1alpha2.LabelScopeName: "vfw"}
	webOf := func(cluster string) healthscope.Member {
		return member(cluster, "Deployment", "web", healthscope.Ready, "")
	}
	everywhere := func(set map[string]string) world {
		w := world{clusters: []string{edge1, edge2}, labels: map[string]map[string]string{edge1: {"tenant": "a"}, edge2: {"tenant": "b"}}}
		for _, cluster := range []string{hub, edge1, edge2} {
			w.bundles = append(w.bundles, labelledWith(bundleOf(cluster, "1-web", webOf(cluster)), set))
		}
		return w
	}
	selecting := func(clusters *corev1alpha2.ClusterSelection) []corev1alpha2.ScopeApp {
		return []corev1alpha2.ScopeApp{{Name: "web", Selector: &metav1.LabelSelector{MatchLabels: tier}, Clusters: clusters}}
	}
	cases := map[string]struct {
		spec corev1alpha2.HealthScopeSpec
		set  map[string]string
		want []string
	}{
		"all by default":                     {corev1alpha2.HealthScopeSpec{Apps: selecting(nil)}, tier, []string{edge1, edge2, hub}},
		"by name":                            {corev1alpha2.HealthScopeSpec{Apps: selecting(namedClusters(edge1))}, tier, []string{edge1}},
		"the hub by name":                    {corev1alpha2.HealthScopeSpec{Apps: selecting(namedClusters(hub))}, tier, []string{hub}},
		"by label":                           {corev1alpha2.HealthScopeSpec{Apps: selecting(tenantClusters("b"))}, tier, []string{edge2}},
		"by name or label":                   {corev1alpha2.HealthScopeSpec{Apps: selecting(&corev1alpha2.ClusterSelection{Names: []string{hub}, Selector: tenantClusters("a").Selector})}, tier, []string{edge1, hub}},
		"for all apps":                       {corev1alpha2.HealthScopeSpec{Clusters: tenantClusters("a"), Apps: selecting(nil)}, tier, []string{edge1}},
		"an app narrows":                     {corev1alpha2.HealthScopeSpec{Clusters: namedClusters(edge1, hub), Apps: selecting(namedClusters(edge1, edge2))}, tier, []string{edge1}},
		"by the scope's own label":           {corev1alpha2.HealthScopeSpec{Clusters: tenantClusters("b")}, named, []string{edge2}},
		"a reference into every cluster":     {corev1alpha2.HealthScopeSpec{Clusters: tenantClusters("b"), WorkloadReferences: refs(bundleRef("1-web"))}, nil, []string{edge2}},
		"the label joins an app that limits": {corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "app-of-1-web", Clusters: tenantClusters("a")}}}, named, []string{edge1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judgeIn(everywhere(c.set), scopeOf(c.spec), noon)
			clusters := sets.New[string]()
			for at := range v.counts {
				clusters.Insert(at.cluster)
			}
			if diff := cmp.Diff(c.want, sets.List(clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, p := range v.Members {
				if p.State != healthscope.Ready {
					t.Errorf("%s in %s is %s, %s: %s", p.Key, p.Cluster, p.State, p.Reason, p.Message)
				}
			}
		})
	}
}

func TestExpectedInExcludedClusterIsUnknown(t *testing.T) {
	t.Parallel()
	w := world{
		clusters: []string{edge1, edge2}, labels: map[string]map[string]string{edge1: {"tenant": "a"}, edge2: {"tenant": "b"}},
		bundles: []*fleet.Bundle{bundleOf(edge1, "1-web", readyWeb1), bundleOf(edge2, "1-web", readyWeb2)},
	}
	cases := map[string]corev1alpha2.HealthScopeSpec{
		"an expected cluster":   {Clusters: tenantClusters("a"), ExpectedClusters: []string{edge1, edge2}, WorkloadReferences: refs(bundleRef("1-web"))},
		"a reference to it":     {Clusters: tenantClusters("a"), WorkloadReferences: refs(at(edge1, bundleRef("1-web")), at(edge2, bundleRef("1-web")))},
		"an expected resource":  {Clusters: tenantClusters("a"), Apps: []corev1alpha2.ScopeApp{{Name: "web", WorkloadReferences: refs(bundleRef("1-web")), ExpectedResources: []corev1alpha2.ExpectedResource{{Kind: "Service", Name: "web", Cluster: edge2}}}}},
		"an app that is narrow": {ExpectedClusters: []string{edge1, edge2}, Apps: []corev1alpha2.ScopeApp{{Name: "web", WorkloadReferences: refs(bundleRef("1-web")), Clusters: namedClusters(edge1)}}},
	}
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusIn(w, scopeOf(spec), noon)
			c := only(t, s.Culprits)
			if s.Health != corev1alpha2.UnknownHealth || c.Cluster != edge2 || c.Reason != string(healthscope.ReasonClusterExcluded) || !strings.Contains(c.Cause, edge2) {
				t.Errorf("health is %s, culprit: %+v", s.Health, c)
			}
		})
	}
}

// TestUnknownClusterNameIsUnknown asserts that a scope with a misspelt cluster name, or that of a removed cluster, is not
// healthy.
func TestUnknownClusterNameIsUnknown(t *testing.T) {
	t.Parallel()
	w := world{
		clusters: []string{edge1}, labels: map[string]map[string]string{edge1: {"tenant": "a"}},
		bundles: []*fleet.Bundle{bundleOf(edge1, "1-web", readyWeb1)},
	}
	web := corev1alpha2.ScopeApp{Name: "web", WorkloadReferences: refs(bundleRef("1-web"))}
	narrow := web
	narrow.Clusters = namedClusters(edge1, edge2)
	for name, spec := range map[string]corev1alpha2.HealthScopeSpec{
		"of the scope": {Clusters: namedClusters(edge1, edge2), Apps: []corev1alpha2.ScopeApp{web}},
		"of an app":    {Apps: []corev1alpha2.ScopeApp{narrow}},
		"of both":      {Clusters: namedClusters(edge1, edge2), Apps: []corev1alpha2.ScopeApp{narrow}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusIn(w, scopeOf(spec), noon)
			if c := only(t, s.Culprits); c.Cluster != edge2 || c.Reason != string(healthscope.ReasonUnknownCluster) {
				t.Errorf("culprit %+v", c)
			}
			reachable := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionClustersReachable)
			if s.Health != corev1alpha2.UnknownHealth || s.ClustersReachable != "1/2" || reachable.Reason != string(ReasonClusterUnknown) || s.Summary.Ready != 1 || s.Summary.Total != 2 {
				t.Errorf("health %s, clusters %s, condition %s, %+v", s.Health, s.ClustersReachable, reachable.Reason, s.Summary)
			}
			if want := "Cluster/" + edge2 + ": UnknownCluster"; s.FirstCulprit != want {
				t.Errorf("first culprit %q, want %q", s.FirstCulprit, want)
			}
		})
	}
}

func TestReferenceNamesExcludedClusterOfBundle(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{edge1}, labels: map[string]map[string]string{edge1: {"tenant": "b"}}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-web", readyWeb1)}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{Clusters: tenantClusters("a"), WorkloadReferences: refs(bundleRef("1-web"))}), noon)
	if c := only(t, s.Culprits); c.Reason != string(healthscope.ReasonNotFound) || !strings.Contains(c.Cause, edge1) {
		t.Errorf("the culprit is %+v", c)
	}
}

func TestInvalidClusterSelectorSelectsNone(t *testing.T) {
	t.Parallel()
	bad := &corev1alpha2.ClusterSelection{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tenant", Operator: "Like"}}}}
	w := world{clusters: []string{edge1}, labels: map[string]map[string]string{edge1: {"tenant": "a"}}, bundles: []*fleet.Bundle{labelledWith(bundleOf(edge1, "1-web", readyWeb1), map[string]string{corev1alpha2.LabelScopeName: "vfw"})}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{Clusters: bad}), noon)
	if c := only(t, s.Culprits); c.Reason != string(healthscope.ReasonInvalidReference) || !strings.Contains(c.Cause, "Like") {
		t.Errorf("the culprit is %+v", c)
	}
}

// TestCarriedOverStatusFollowsTheSelectionOfClusters: a restart keeps the status of an unreachable cluster while its labels are
// unknown, and drops it when the cluster is not selected.
func TestCarriedOverStatusFollowsTheSelectionOfClusters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels map[string]string
		total  int32
	}{
		"not known yet": {nil, 4}, "selected": {map[string]string{"tenant": "a"}, 4}, "not selected": {map[string]string{"tenant": "b"}, 0},
	} {
		scope := scopeOf(corev1alpha2.HealthScopeSpec{Clusters: tenantClusters("a"), Apps: []corev1alpha2.ScopeApp{{Name: "web", Selector: &metav1.LabelSelector{}}}})
		scope.Status.ObservedGeneration = scope.Generation
		scope.Status.Apps = []corev1alpha2.AppStatus{{Name: "web", State: "Ready", Total: 4, Ready: 4, Clusters: []corev1alpha2.ClusterStatus{{Name: edge1, State: "Ready", Total: 4, Ready: 4}}}}
		w := world{clusters: []string{edge1}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable}, labels: map[string]map[string]string{edge1: c.labels}}
		if got := statusIn(w, scope, noon).Summary.Total; got != c.total {
			t.Errorf("%s: %d resources are carried over, want %d", name, got, c.total)
		}
	}
}
