package healthscope_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// rollout returns a StatefulSet that is Pending since a time, with some replicas ready.
func rollout(since time.Time, ready int32) healthscope.Result {
	return healthscope.Result{
		Key:   healthscope.Key{Group: "apps", Kind: "StatefulSet", Name: "db"},
		State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Since: since,
		Progress: &healthscope.Progress{Generation: 1, Ready: ready, Available: ready, Updated: ready},
	}
}

// stateAfter judges a rollout every 40 seconds, with the previous judgement as history, and returns the last state.
func stateAfter(steps int, ready func(step int) int32) healthscope.State {
	begin := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	var before []healthscope.Member
	policy := healthscope.DefaultPolicy()
	for step := range steps {
		results := []healthscope.Result{rollout(begin, ready(step))}
		policy.WithHistory(results, before)
		before = healthscope.Judge(results, policy, begin.Add(time.Duration(step)*40*time.Second)).Members
	}
	return before[0].State
}

func TestRolloutThatGetsOnDoesNotTimeOut(t *testing.T) {
	if got := stateAfter(20, func(step int) int32 { return int32(step) }); got != healthscope.Pending {
		t.Errorf("a rollout of 20 replicas of 40 s each is %s, want Pending", got)
	}
	if got := stateAfter(20, func(step int) int32 { return min(int32(step), 3) }); got != healthscope.Failed {
		t.Errorf("a rollout that got stuck for more than 600 s is %s, want Failed", got)
	}
	if got := stateAfter(20, func(step int) int32 { return int32(step % 2) }); got != healthscope.Failed {
		t.Errorf("a replica that comes and goes is %s, want Failed", got)
	}
}

func TestRolloutThatKubernetesTimesHasNoOtherLimit(t *testing.T) {
	begin := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	r := rollout(begin, 0)
	r.Kind, r.Timed = "Deployment", true
	if got := healthscope.Judge([]healthscope.Result{r}, healthscope.DefaultPolicy(), begin.Add(time.Hour)).Members[0].State; got != healthscope.Pending {
		t.Errorf("the rollout is %s, want Pending until Kubernetes says that it took too long", got)
	}
	r.Timed = false
	if got := healthscope.Judge([]healthscope.Result{r}, healthscope.DefaultPolicy(), begin.Add(time.Hour)).Members[0].State; got != healthscope.Failed {
		t.Errorf("without that it is %s, want Failed", got)
	}
}
