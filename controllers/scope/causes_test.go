package scope

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// statusWithCauses returns the status of a scope when pods can be looked at.
func statusWithCauses(t *testing.T, c *causes, clock *clocktesting.FakePassiveClock, w world, scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.HealthScopeStatus {
	t.Helper()
	clock.SetTime(now)
	g := gatherIn(w, scope, now)
	g.causes = c.find(t.Context(), g.findings, healthscope.DefaultPolicy(), now)
	v := decide(&scope.Spec, g, newMemory(&scope.Status), healthscope.DefaultPolicy(), now)
	return newStatus(scope, v, outside{state: w.State}, now)
}

func TestTheCauseOfAReferenceIsItsPod(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"), deploymentRef("fine"))})
	failed := deployment("web", healthscope.Failed, 0, 1)
	failed.Message = "ReplicaSet has timed out"
	w := withDeployments(failed, deployment("fine", healthscope.Ready, 1, 1))
	const pod = "Pod web-1-a: 0/3 nodes are available"
	for name, c := range map[string]struct {
		cause string
		err   error
		want  string
	}{
		"a pod is found":         {pod, nil, pod},
		"no pod explains it":     {"", nil, failed.Message},
		"pods may not be listed": {fleet.PodsHint, nil, fmt.Sprintf("%s (%s)", failed.Message, fleet.PodsHint)},
		"there is no answer":     {"", errors.New("timeout"), failed.Message},
	} {
		var asked []string
		clock := clocktesting.NewFakePassiveClock(noon)
		all := newCauses(func(_ context.Context, of healthscope.Key, _ healthscope.Policy, _ time.Time) (string, error) {
			asked = append(asked, of.Name)
			return c.cause, c.err
		}, clock)
		s := statusWithCauses(t, all, clock, w, scope, noon)
		if got := only(t, s.Culprits); got.Cause != c.want || got.Reason != string(healthscope.ReasonProgressDeadlineExceeded) {
			t.Errorf("%s: %s with cause %q, want %q", name, got.Reason, got.Cause, c.want)
		}
		statusWithCauses(t, all, clock, w, scope, noon.Add(time.Second))
		if strings.Join(asked, " ") != "web" {
			t.Errorf("%s: asked for the pods of %q; want those of web, once", name, asked)
		}
		statusWithCauses(t, all, clock, w, scope, noon.Add(time.Minute))
		if len(asked) != 2 {
			t.Errorf("%s: asked %d times in a minute, want 2", name, len(asked))
		}
	}
}

func TestLookingAtPodsIsBounded(t *testing.T) {
	t.Parallel()
	var list []corev1alpha2.WorkloadReference
	var results []healthscope.Result
	for i := range 3 * causesAtOnce {
		name := fmt.Sprintf("web%02d", i)
		list, results = append(list, deploymentRef(name)), append(results, deployment(name, healthscope.Failed, 0, 1))
	}
	scope, w := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: list}), withDeployments(results...)
	asked, clock := map[string]int{}, clocktesting.NewFakePassiveClock(noon)
	all := newCauses(func(ctx context.Context, of healthscope.Key, _ healthscope.Policy, _ time.Time) (string, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > causeTimeout {
			t.Error("there is no deadline")
		}
		asked[of.Name]++
		return "", nil
	}, clock)
	for visit := range 3 {
		statusWithCauses(t, all, clock, w, scope, noon.Add(time.Duration(visit)*time.Second))
		if want := (visit + 1) * causesAtOnce; len(asked) != want {
			t.Errorf("after visit %d, %d workloads have been looked at, want %d", visit, len(asked), want)
		}
	}
}
