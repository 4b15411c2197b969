package scope

import (
	"testing"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// expecting returns a scope of one app with a bundle. The app expects a Deployment "web" and a Service "front".
func expecting(cluster string) *corev1alpha2.HealthScope {
	return scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{
		Name: "shop", WorkloadReferences: refs(bundleRef("7-shop")),
		ExpectedResources: []corev1alpha2.ExpectedResource{{Group: "apps", Kind: "Deployment", Name: "web", Cluster: cluster}, {Kind: "Service", Name: "front", Cluster: cluster}},
	}}})
}

// shopIn returns the bundle with all expected resources, or without the Deployment if whole is false.
func shopIn(cluster string, whole bool) *fleet.Bundle {
	members := []healthscope.Member{member(cluster, "Service", "front", healthscope.Ready, "")}
	if whole {
		members = append(members, member(cluster, "Deployment", "web", healthscope.Ready, ""))
	}
	return bundleOf(cluster, "7-shop", members...)
}

func TestDeletedExpectedResourceIsMissing(t *testing.T) {
	t.Parallel()
	scope := expecting("")
	there := world{clusters: []string{edge1, edge2}, bundles: []*fleet.Bundle{shopIn(edge1, true), shopIn(edge2, true)}}
	if s := statusIn(there, scope, noon); s.Health != corev1alpha2.Healthy || s.ResourcesReady != "4/4" {
		t.Fatalf("%s, %s ready; want healthy and 4/4", s.Health, s.ResourcesReady)
	}
	gone := world{clusters: []string{edge1, edge2}, bundles: []*fleet.Bundle{shopIn(edge1, true), shopIn(edge2, false)}}
	m := newHistory(&scope.Status)
	policy := healthscope.DefaultPolicy()
	for _, c := range []struct {
		after   time.Duration
		pending int32
		failed  int32
	}{{0, 1, 0}, {policy.NotPresentGrace + time.Second, 0, 1}} {
		now := noon.Add(c.after)
		g := gatherIn(gone, scope, now)
		s := newStatus(scope, decide(&scope.Spec, g, m, policy, now), externalStatus{state: gone.State}, now)
		if s.Health != corev1alpha2.Unhealthy || s.ResourcesReady != "3/4" || s.Summary.Pending != c.pending || s.Summary.Failed != c.failed {
			t.Errorf("after %s: %s, %s ready, %+v; want unhealthy, 3/4, %d pending and %d failed", c.after, s.Health, s.ResourcesReady, s.Summary, c.pending, c.failed)
		}
		got := only(t, s.Culprits)
		want := corev1alpha2.Culprit{Cluster: edge2, App: "shop", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", State: "NotPresent", Reason: "NotFound"}
		got.Since, got.Cause = nil, ""
		if got != want {
			t.Errorf("after %s: culprit %+v, want %+v", c.after, got, want)
		}
	}
}

func TestWhereAResourceIsExpected(t *testing.T) {
	t.Parallel()
	truncated := shopIn(edge1, false)
	truncated.Truncated, truncated.Unlisted = true, healthscope.Summary{Total: 2, Ready: 2, Healthy: 2}
	empty := bundleOf(edge1, "7-shop")
	empty.Observed = false
	referred := expecting("")
	referred.Spec.Apps[0].WorkloadReferences = refs(deploymentRef("web"))
	everywhere := expecting("")
	everywhere.Spec.ExpectedClusters = []string{edge1, edge2}
	for name, c := range map[string]struct {
		world world
		scope *corev1alpha2.HealthScope
		// want are the state, the reason and the cluster of the Deployment "web".
		want string
	}{
		"it is in the cluster that is named":     {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, expecting(edge1), "Ready  acme+edge1"},
		"it is elsewhere":                        {world{clusters: []string{edge1, edge2}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, expecting(edge2), "NotPresent NotFound acme+edge2"},
		"its cluster cannot be seen":             {world{clusters: []string{edge2}, states: map[string]fleet.Reachability{edge2: fleet.Unreachable}}, expecting(edge2), "Unknown ClusterUnreachable acme+edge2"},
		"nobody knows its cluster":               {world{}, expecting("acme+moon"), "Unknown UnknownCluster acme+moon"},
		"its bundle is nowhere":                  {world{}, expecting(""), "NotPresent NotFound local"},
		"its bundle has no room for all":         {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{truncated}}, expecting(""), "Unknown NotListed acme+edge1"},
		"no monitor has looked":                  {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{empty}}, expecting(""), "Unknown NotObserved acme+edge1"},
		"it is referred to":                      {withDeployments(deployment("web", healthscope.Ready, 1, 1)), referred, "Ready  local"},
		"it is missing in one expected cluster":  {world{clusters: []string{edge1, edge2}, bundles: []*fleet.Bundle{shopIn(edge2, true), shopIn(edge1, false)}}, everywhere, "NotPresent NotFound acme+edge1"},
		"it is missing where another's is alike": {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{bundleOf(edge1, "7-shop", member(edge1, "StatefulSet", "web", healthscope.Ready, ""))}}, expecting(""), "NotPresent NotFound acme+edge1"},
	} {
		var got string
		for _, m := range judgeIn(c.world, c.scope, noon).Members {
			if m.Kind == "Deployment" && m.Name == "web" {
				got = string(m.State) + " " + string(m.Reason) + " " + m.Cluster
				break // The worst is the first.
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestExpectedResourceCountsOnceAfterRestart has a hub that starts while a cluster is unreachable.
func TestExpectedResourceCountsOnceAfterRestart(t *testing.T) {
	t.Parallel()
	scope := expecting("")
	scope.Status = statusIn(world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, scope, noon)
	away := world{clusters: []string{edge1}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable}}
	for range 3 {
		scope.Status = statusIn(away, scope, noon.Add(time.Minute))
		if s := scope.Status; s.Health != corev1alpha2.UnknownHealth || s.ResourcesReady != "0/2" {
			t.Fatalf("%s, %s ready; want unknown and 0/2", s.Health, s.ResourcesReady)
		}
	}
}
