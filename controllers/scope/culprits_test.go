package scope

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// unreachableBundle returns a bundle with n ConfigMaps, as the view shows it for a cluster that does not respond.
func unreachableBundle(cluster string, n int) *fleet.Bundle {
	const name = "1-web"
	var members []healthscope.Member
	for i := range n {
		members = append(members, member(cluster, "ConfigMap", fmt.Sprintf("%s-%d", name, i), healthscope.Ready, ""))
	}
	b := bundleOf(cluster, name, healthscope.MarkUnreachable(members, healthscope.ReasonClusterUnreachable, "no answer", seenAt)...)
	b.Stale = true
	return b
}

func TestUnreachableClusterIsOneCulpritBeforeItsObjects(t *testing.T) {
	t.Parallel()
	failed := member(hub, "Deployment", "web", healthscope.Failed, "CrashLoopBackOff")
	truncated := unreachableBundle(edge1, 2)
	truncated.Truncated, truncated.Unlisted = true, healthscope.Summary{Total: 10, Unknown: 10}
	w := world{
		clusters: []string{edge1, edge2}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable, edge2: fleet.Unreachable},
		bundles: []*fleet.Bundle{truncated, unreachableBundle(edge2, 1), bundleOf(hub, "1-web", failed)},
	}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-web"))})
	s := statusIn(w, scope, noon)
	var got []string
	for _, c := range s.Culprits {
		got = append(got, fmt.Sprintf("%s/%s in %s: %s %s", c.Kind, c.Name, c.Cluster, c.State, c.Reason))
	}
	want := []string{
		"Deployment/web in local: Failed CrashLoopBackOff",
		"Cluster/acme+edge1 in acme+edge1: Unknown ClusterUnreachable",
		"Cluster/acme+edge2 in acme+edge2: Unknown ClusterUnreachable",
		"ConfigMap/1-web-0 in acme+edge1: Unknown ClusterUnreachable",
		"ConfigMap/1-web-1 in acme+edge1: Unknown ClusterUnreachable",
		"ConfigMap/1-web-0 in acme+edge2: Unknown ClusterUnreachable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	c := s.Culprits[1]
	if c.Cause != "12 resources cannot be seen: no answer" || !c.Since.Time.Equal(seenAt) || c.App != "" {
		t.Errorf("the culprit is %+v", c)
	}
	if one := s.Culprits[2].Cause; one != "1 resource cannot be seen: no answer" {
		t.Errorf("the cause of the other cluster is %q", one)
	}
	if diff := cmp.Diff(s, statusIn(w, scope, noon.Add(time.Hour)), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".LastTransitionTime" }, cmp.Ignore())); diff != "" {
		t.Errorf("the status changes with the clock alone:\n%s", diff)
	}
}

func TestTheMetricNamesTheFirstCulpritOfTheStatus(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{edge1}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable}, bundles: []*fleet.Bundle{unreachableBundle(edge1, 3)}}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-web"))})
	r := NewRegistry()
	r.entryFor(scope, noon)
	v := judgeIn(w, scope, noon)
	r.put(client.ObjectKeyFromObject(scope), v.Judged)
	s := newStatus(scope, v, externalStatus{state: w.State}, noon)
	if diff := cmp.Diff(&s.Culprits[0], r.Get(types.NamespacedName{Namespace: "shop", Name: "vfw"}).FirstCulprit); diff != "" {
		t.Errorf("-status +metric:\n%s", diff)
	}
	if want := "Cluster/acme+edge1: ClusterUnreachable"; s.FirstCulprit != want {
		t.Errorf("firstCulprit is %q, want %q", s.FirstCulprit, want)
	}
}

// TestACulpritThatIsAClusterIsNotCarriedOverAsAResource: the carried-over resources of an unreachable cluster are the same after
// each write. The culprit for the cluster is not one of them.
func TestACulpritThatIsAClusterIsNotCarriedOverAsAResource(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{edge1}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable}}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-web"))})
	before := w
	before.bundles = []*fleet.Bundle{unreachableBundle(edge1, 3)}
	scope.Status = statusIn(before, scope, noon)
	for i := range 3 {
		scope.Status = statusIn(w, scope, noon.Add(time.Duration(i)*time.Minute))
		if scope.Status.Summary.Total != 3 || len(scope.Status.Culprits) != 4 {
			t.Fatalf("after %d writes there are %d resources and %d culprits", i+1, scope.Status.Summary.Total, len(scope.Status.Culprits))
		}
	}
}
