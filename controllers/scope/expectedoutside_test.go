package scope

import (
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// References outside apps are not parts of one application: each of them is expected in every cluster.
func TestEachReferenceOutsideAppsIsExpectedEverywhere(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{hub, edge1, edge2}, bundles: []*fleet.Bundle{
		bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "1-sink", readyWeb2), bundleOf(edge1, "1-source", readyWeb1),
	}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{
		WorkloadReferences: refs(bundleRef("1-sink"), bundleRef("1-source")), ExpectedClusters: []string{edge1, edge2},
	}), noon)
	missing := only(t, s.Culprits)
	if s.Health != corev1alpha2.Unhealthy || missing.Name != "1-source" || missing.Cluster != edge2 || missing.State != "NotPresent" {
		t.Errorf("want unhealthy for 1-source, which is not in %s; got %s: %+v", edge2, s.Health, missing)
	}
}
