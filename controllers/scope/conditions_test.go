package scope

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

func TestConditionsKeepTransitionTimeWhileStatusIsSame(t *testing.T) {
	t.Parallel()
	policy := healthscope.DefaultPolicy()
	l := newScopeHistory(deploymentRef("web"))
	type step struct {
		after  time.Duration
		object healthscope.Result
		turned time.Duration
	}
	for i, s := range []step{
		{0, deployment("web", healthscope.Ready, 3, 3), 0},
		{time.Minute, deployment("web", healthscope.Ready, 4, 4), 0},
		{2 * time.Minute, deployment("web", healthscope.Pending, 3, 4), 2 * time.Minute},
		{3 * time.Minute, deployment("web", healthscope.Failed, 3, 4), 2 * time.Minute},
		{4 * time.Minute, deployment("web", healthscope.Ready, 4, 4), 4 * time.Minute},
	} {
		l.w = withDeployments(s.object)
		status := l.judge(policy, noon.Add(s.after))
		ready := meta.FindStatusCondition(status.Conditions, corev1alpha2.ConditionReady)
		if got := ready.LastTransitionTime.Sub(noon); got != s.turned {
			t.Errorf("step %d: the condition has turned after %s, want %s", i, got, s.turned)
		}
	}
}

func TestConditionsOfOtherControllersAreKept(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{})
	// OAM's first runtimes wrote this condition.
	synced := metav1.Condition{Type: "Synced", Status: metav1.ConditionTrue, Reason: "ReconcileSuccess"}
	scope.Status.Conditions = []metav1.Condition{synced}
	s := statusIn(world{}, scope, noon)
	if diff := cmp.Diff(&synced, meta.FindStatusCondition(s.Conditions, "Synced")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(scope.Status.Conditions) != 1 {
		t.Errorf("the previous status was changed: %v", scope.Status.Conditions)
	}
}

func TestConditionsOfOthers(t *testing.T) {
	t.Parallel()
	old := metav1.Condition{Status: metav1.ConditionUnknown, Reason: "Old"}
	conflict := &InventoryReport{Conflict: `Pod/a belongs to the older scope "default/b" in A&AI`}
	synced := &InventoryReport{InventoryStatus: corev1alpha2.InventoryStatus{Synced: 6}}
	pending := &InventoryReport{InventoryStatus: corev1alpha2.InventoryStatus{Synced: 5, Pending: 1}, Reason: "Pending", Message: "no tenant t-1"}
	cases := map[string]struct {
		external externalStatus
		kind     string
		want     *metav1.Condition
		counts   string
	}{
		"NoInventory":    {externalStatus{}, corev1alpha2.ConditionInventorySynced, nil, "null"},
		"Synced":         {externalStatus{inventory: synced}, corev1alpha2.ConditionInventorySynced, &metav1.Condition{Status: metav1.ConditionTrue, Reason: "Synced", Message: "A&AI holds the state of every resource"}, `{"synced":6,"pending":0,"failed":0}`},
		"Pending":        {externalStatus{inventory: pending}, corev1alpha2.ConditionInventorySynced, &metav1.Condition{Status: metav1.ConditionFalse, Reason: "Pending", Message: "no tenant t-1"}, `{"synced":5,"pending":1,"failed":0}`},
		"AConflict":      {externalStatus{inventory: conflict}, corev1alpha2.ConditionInventoryConflict, &metav1.Condition{Status: metav1.ConditionTrue, Reason: "OlderScope", Message: conflict.Conflict}, `{"synced":0,"pending":0,"failed":0}`},
		"NoConflict":     {externalStatus{inventory: &InventoryReport{}}, corev1alpha2.ConditionInventoryConflict, nil, `{"synced":0,"pending":0,"failed":0}`},
		"NotKnownYet":    {externalStatus{inventory: &InventoryReport{Waiting: true}}, corev1alpha2.ConditionInventoryConflict, &old, "null"},
		"NobodyToAsk":    {externalStatus{}, corev1alpha2.ConditionInventoryConflict, nil, "null"},
		"ABadCheck":      {externalStatus{healthChecks: "1 of 2 health checks cannot be used"}, corev1alpha2.ConditionHealthChecksInvalid, &metav1.Condition{Status: metav1.ConditionTrue, Reason: "InvalidExpression", Message: "1 of 2 health checks cannot be used"}, "null"},
		"AllChecksAreOk": {externalStatus{}, corev1alpha2.ConditionHealthChecksInvalid, nil, "null"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope := scopeOf(corev1alpha2.HealthScopeSpec{})
			// The earlier condition must not remain unless the new one is not known yet.
			before := old
			before.Type = c.kind
			scope.Status.Conditions = []metav1.Condition{before}
			c.external.state = world{}.State
			s := newStatus(scope, judgeIn(world{}, scope, noon), c.external, noon)
			if c.want == &old {
				c.want = &before
			} else if c.want != nil {
				c.want.Type, c.want.ObservedGeneration, c.want.LastTransitionTime = c.kind, 3, metav1.NewTime(noon)
			}
			if diff := cmp.Diff(c.want, meta.FindStatusCondition(s.Conditions, c.kind)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.counts, wire(t, s.Inventory)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
