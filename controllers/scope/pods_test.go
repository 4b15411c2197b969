package scope

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/lru"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// newCache returns an empty cache of diagnoses.
func newCache(judge func(context.Context, healthscope.Key, healthscope.Policy, time.Time) (fleet.PodDiagnosis, error)) *podDiagnosisCache {
	return &podDiagnosisCache{judge: judge, known: lru.New(maxPodDiagnoses)}
}

// statusWithPods returns the status of a scope with the diagnoses of pods.
func statusWithPods(t *testing.T, c *podDiagnosisCache, w world, scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.HealthScopeStatus {
	t.Helper()
	g := gatherIn(w, scope, now)
	c.diagnose(t.Context(), &g, healthscope.DefaultPolicy(), now)
	return statusFrom(w, g, scope, now)
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
		all := newCache(func(_ context.Context, of healthscope.Key, _ healthscope.Policy, _ time.Time) (fleet.PodDiagnosis, error) {
			asked = append(asked, of.Name)
			return fleet.PodDiagnosis{Cause: c.cause}, c.err
		})
		s := statusWithPods(t, all, w, scope, noon)
		if got := only(t, s.Culprits); got.Cause != c.want || got.Reason != string(healthscope.ReasonProgressDeadlineExceeded) {
			t.Errorf("%s: %s with cause %q, want %q", name, got.Reason, got.Cause, c.want)
		}
		statusWithPods(t, all, w, scope, noon.Add(time.Second))
		if strings.Join(asked, " ") != "web" {
			t.Errorf("%s: asked for the pods of %q; want those of web, once", name, asked)
		}
		statusWithPods(t, all, w, scope, noon.Add(time.Minute))
		if len(asked) != 2 {
			t.Errorf("%s: asked %d times in a minute, want 2", name, len(asked))
		}
	}
}

// TestPodsOfManyWorkloadsAreLookedAtInTurn asserts that the pods of a few workloads are read at a time, and that no workload
// waits for much longer than the interval.
func TestPodsOfManyWorkloadsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	var list []corev1alpha2.WorkloadReference
	var results []healthscope.Result
	for i := range 5 * podsWorkloadsPerReconcile {
		name := fmt.Sprintf("web%02d", i)
		list, results = append(list, deploymentRef(name)), append(results, deployment(name, healthscope.Failed, 0, 1))
	}
	g := gatherIn(withDeployments(results...), scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: list}), noon)
	last, longest, atOnce, now := map[string]time.Time{}, time.Duration(0), 0, noon
	all := newCache(func(ctx context.Context, of healthscope.Key, _ healthscope.Policy, _ time.Time) (fleet.PodDiagnosis, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > podsTimeout {
			t.Error("there is no deadline")
		}
		if at, before := last[of.Name]; before {
			longest = max(longest, now.Sub(at))
		}
		last[of.Name], atOnce = now, atOnce+1
		return fleet.PodDiagnosis{}, nil
	})
	for now.Before(noon.Add(5 * time.Minute)) {
		atOnce = 0
		all.diagnose(t.Context(), &g, healthscope.DefaultPolicy(), now)
		now = g.nextPods
		if atOnce > podsWorkloadsPerReconcile {
			t.Errorf("one reconcile looks at %d workloads", atOnce)
		}
	}
	if len(last) != len(list) || longest > podsInterval+5*podsPause {
		t.Errorf("%d of %d workloads were looked at, one after %s", len(last), len(list), longest)
	}
	for name, at := range last {
		if noon.Add(5*time.Minute).Sub(at) > podsInterval+5*podsPause {
			t.Errorf("%s was looked at last at %s", name, at)
		}
	}
}

// TestTheLastPodCrashesToo has pods that crash one after the other. The state of the workload and its reason stay the same, and
// the scope does not wait for podsInterval.
func TestTheLastPodCrashesToo(t *testing.T) {
	t.Parallel()
	oneOfTwo, noneOfTwo := deployment("web", healthscope.Pending, 1, 2), deployment("web", healthscope.Pending, 0, 2)
	oneOfTwo.Reason, noneOfTwo.Reason = healthscope.ReasonReplicasNotReady, healthscope.ReasonReplicasNotReady
	answer := fleet.PodDiagnosis{Cause: "Pod web-1-a: CrashLoopBackOff"}
	all := newCache(func(context.Context, healthscope.Key, healthscope.Policy, time.Time) (fleet.PodDiagnosis, error) {
		return answer, nil
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))})
	if c := only(t, statusWithPods(t, all, withDeployments(oneOfTwo), scope, noon).Culprits); c.State != "Pending" {
		t.Fatalf("one pod of two is ready, and the workload is %s", c.State)
	}
	answer.Reason = "CrashLoopBackOff"
	if c := only(t, statusWithPods(t, all, withDeployments(noneOfTwo), scope, noon.Add(time.Second)).Culprits); c.State != "Failed" || c.Reason != "CrashLoopBackOff" {
		t.Errorf("%s, %s; want Failed, CrashLoopBackOff", c.State, c.Reason)
	}
}

// TestANewWorkloadHasItsOwnDiagnosis creates a Deployment again with the name of one whose pods fail. The scope does not wait for podsInterval.
func TestANewWorkloadHasItsOwnDiagnosis(t *testing.T) {
	t.Parallel()
	answer := fleet.PodDiagnosis{Reason: "ImagePullBackOff", Cause: "Pod web-1-a: ImagePullBackOff"}
	all := newCache(func(context.Context, healthscope.Key, healthscope.Policy, time.Time) (fleet.PodDiagnosis, error) {
		return answer, nil
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))})
	web := deployment("web", healthscope.Pending, 0, 1)
	web.Reason = healthscope.ReasonReplicasNotReady
	for i, want := range []string{"Failed", "Pending"} {
		web.UID = fmt.Sprintf("uid-%d", i)
		if c := only(t, statusWithPods(t, all, withDeployments(web), scope, noon.Add(time.Duration(i)*time.Second)).Culprits); c.State != want {
			t.Errorf("Deployment %d is %s: %s", i, c.State, c.Cause)
		}
		answer = fleet.PodDiagnosis{}
	}
}

// TestAWorkloadIsFailedWhenItsPodsAre asserts that a workload is Failed with its pods, as in bundles, until there is another
// response.
func TestAWorkloadIsFailedWhenItsPodsAre(t *testing.T) {
	t.Parallel()
	const crashed = "Pod web-1-a: CrashLoopBackOff: container web"
	pending := deployment("web", healthscope.Pending, 0, 1)
	pending.Reason = healthscope.ReasonReplicasNotReady
	someReady := deployment("web", healthscope.Pending, 1, 2)
	someReady.Reason = healthscope.ReasonReplicasNotReady
	answer, failure := fleet.PodDiagnosis{Reason: "CrashLoopBackOff", Message: "container web", Cause: crashed}, error(nil)
	all := newCache(func(context.Context, healthscope.Key, healthscope.Policy, time.Time) (fleet.PodDiagnosis, error) {
		return answer, failure
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))})
	for _, step := range []struct {
		name          string
		web           healthscope.Result
		after         time.Duration
		noAnswer      bool
		state, reason string
	}{
		{"its pod crashes", pending, 0, false, "Failed", "CrashLoopBackOff"},
		{"no answer for a minute", pending, time.Minute, true, "Failed", "CrashLoopBackOff"},
		{"a pod of it is ready", someReady, time.Minute, true, "Pending", "ReplicasNotReady"},
		{"no answer for long", pending, 10 * time.Minute, true, "Pending", "ReplicasNotReady"},
	} {
		if failure = nil; step.noAnswer {
			failure = errors.New("timeout")
		}
		s := statusWithPods(t, all, withDeployments(step.web), scope, noon.Add(step.after))
		if c := only(t, s.Culprits); c.State != step.state || c.Reason != step.reason {
			t.Errorf("%s: %s, %s; want %s, %s", step.name, c.State, c.Reason, step.state, step.reason)
		}
	}
}
