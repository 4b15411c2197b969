package scope

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// TestAScopeFollowsABoundedNumberOfKinds: a scope may refer to 5000 objects of as many kinds. The controller watches a limited
// number of kinds, and the scope reports this.
func TestAScopeFollowsABoundedNumberOfKinds(t *testing.T) {
	t.Parallel()
	all := []corev1alpha2.WorkloadReference{deploymentRef("web")}
	for i := range 4999 {
		all = append(all, corev1alpha2.WorkloadReference{APIVersion: fmt.Sprintf("g%d.example.com/v1", i), Kind: "Thing", Name: "x"})
	}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: all})
	if got := len(gatherIn(world{}, scope, noon).dependencies.kinds()); got != maxKinds {
		t.Errorf("clusters are asked for %d kinds", got)
	}
	w := withDeployments(deployment("web", healthscope.Ready, 3, 3))
	dropped := 0
	for _, m := range judgeIn(w, scope, noon).Members {
		if m.Reason == healthscope.ReasonTooManyKinds {
			dropped++
		}
	}
	if want := len(all) - maxKinds; dropped != want {
		t.Errorf("%d references are said not to be followed, want %d", dropped, want)
	}
	s := statusIn(w, scope, noon)
	ready := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady)
	if ready.Status != metav1.ConditionUnknown || ready.Reason != string(ReasonTooManyKinds) || !strings.Contains(ready.Message, "more than 100 kinds") {
		t.Errorf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
	}
}

// TestManyObjectsOfAKindAreFollowed: many objects of one kind in many clusters count as one kind per cluster.
func TestManyObjectsOfAKindAreFollowed(t *testing.T) {
	t.Parallel()
	var all []corev1alpha2.WorkloadReference
	for i := range 5000 {
		all = append(all, corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("web%d", i), Cluster: fmt.Sprintf("edge%d", i%200)})
	}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: all})
	if got := len(gatherIn(world{}, scope, noon).dependencies.kinds()); got != 200 {
		t.Errorf("%d kinds in 200 clusters are followed", got)
	}
}
