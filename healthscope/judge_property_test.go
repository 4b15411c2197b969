package healthscope_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

// drawResult draws a raw result from a few kinds and names, so that owners, duplicates and cycles occur.
func drawResult(owners bool) *rapid.Generator[healthscope.Result] {
	return rapid.Custom(func(t *rapid.T) healthscope.Result {
		kinds := []healthscope.Owner{
			{Kind: "Pod"}, {Kind: "Pod"}, {Kind: "Pod"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "Job"}, {Group: "acme.example", Kind: "Gadget"},
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		r := result(kind.Group, kind.Kind, name.Draw(t, "name"), rapid.SampledFrom(healthscope.States()).Draw(t, "state"))
		r.Reason = rapid.SampledFrom([]healthscope.Reason{"", healthscope.ReasonCompleted, healthscope.ReasonNoStatus, "CrashLoopBackOff"}).Draw(t, "reason")
		r.Message = rapid.SampledFrom([]string{"", "m"}).Draw(t, "message")
		r.Serving = rapid.Bool().Draw(t, "serving")
		if rapid.Bool().Draw(t, "timed") {
			r.Since = ago(time.Duration(rapid.IntRange(0, 120).Draw(t, "age")) * time.Second)
		}
		r.ProgressDeadline = time.Duration(rapid.SampledFrom([]int{0, 0, 30, 90}).Draw(t, "deadline")) * time.Second
		r.UID = rapid.SampledFrom([]string{"", "u"}).Draw(t, "uid")
		if rapid.Bool().Draw(t, "counted") {
			r.Replicas = &healthscope.Replicas{Ready: rapid.Int32Range(0, 1).Draw(t, "ready")}
		}
		r.Warning = rapid.Bool().Draw(t, "warning")
		if rapid.Bool().Draw(t, "remembered") {
			r.History = &healthscope.Member{Result: healthscope.Result{State: rapid.SampledFrom(healthscope.States()).Draw(t, "history state"), Reason: "Evicted"}}
			if rapid.Bool().Draw(t, "history timed") {
				r.History.Since = ago(time.Duration(rapid.IntRange(0, 300).Draw(t, "history age")) * time.Second)
				r.History.StoppedServing = ago(time.Duration(rapid.IntRange(0, 120).Draw(t, "idle")) * time.Second)
			}
		}
		if owners && rapid.Bool().Draw(t, "owned") {
			owner := rapid.SampledFrom(kinds).Draw(t, "owner")
			owner.Name = name.Draw(t, "owner name")
			r.Owner = &owner
		}
		return r
	})
}

// drawPolicy draws a policy. Tests that need idempotence draw it without grace.
func drawPolicy(t *rapid.T, grace bool) healthscope.Policy {
	seconds := func(name string, choices ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(choices).Draw(t, name)) * time.Second
	}
	p := healthscope.Policy{PendingTimeout: seconds("pendingTimeout", 0, 60), NotPresentGrace: seconds("notPresentGrace", 0, 45)}
	if grace {
		p.NoStatusGrace = seconds("noStatusGrace", 0, 50)
		p.FailureGrace = seconds("failureGrace", 0, 40)
		p.RecoveryHold = seconds("recoveryHold", 0, 35)
	}
	return p
}

func TestJudgeDoesNotDependOnOrderOrRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(drawResult(true), 0, 12).Draw(t, "results")
		policy := drawPolicy(t, true)
		want := healthscope.Judge(results, policy, noon)
		shuffled := rapid.Permutation(append(results, results...)).Draw(t, "order")
		if diff := cmp.Diff(want, healthscope.Judge(shuffled, policy, noon)); diff != "" {
			t.Fatalf("another order (-want +got):\n%s", diff)
		}
	})
}

func TestJudgingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(drawResult(true), 0, 12).Draw(t, "results")
		policy := drawPolicy(t, false)
		first := healthscope.Judge(results, policy, noon).Members
		judged := make([]healthscope.Result, len(first))
		for i, m := range first {
			judged[i] = m.Result
			judged[i].History = &healthscope.Member{StoppedServing: m.StoppedServing}
		}
		if diff := cmp.Diff(first, healthscope.Judge(judged, policy, noon).Members); diff != "" {
			t.Fatalf("judged again (-first +second):\n%s", diff)
		}
	})
}

func TestNothingChangesBeforeTheNextCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(drawResult(true), 0, 12).Draw(t, "results")
		policy := drawPolicy(t, true)
		judgement := healthscope.Judge(results, policy, noon)
		later := noon.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "later")) * time.Second)
		if next := judgement.NextCheck; !next.IsZero() {
			if !next.After(noon) {
				t.Fatalf("the next check, %v, is not in the future", next)
			}
			if !later.Before(next) {
				later = next.Add(-time.Nanosecond)
			}
		}
		if diff := cmp.Diff(judgement, healthscope.Judge(results, policy, later)); diff != "" {
			t.Fatalf("%v later (-noon +later):\n%s", later.Sub(noon), diff)
		}
	})
}

func TestSomethingChangesAtTheNextCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(drawResult(false), 1, 8).Draw(t, "results")
		policy := drawPolicy(t, true)
		judgement := healthscope.Judge(results, policy, noon)
		if judgement.NextCheck.IsZero() {
			return
		}
		if cmp.Equal(judgement.Members, healthscope.Judge(results, policy, judgement.NextCheck).Members) {
			t.Fatalf("nothing changes at %v", judgement.NextCheck)
		}
	})
}

func TestOnlyPodsReplicaSetsAndJobsAreOwned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(drawResult(true), 0, 12).Draw(t, "results")
		judgement := healthscope.Judge(results, healthscope.Policy{}, noon)
		total := 0
		for _, m := range judgement.Members {
			if m.Owned && m.Kind != "Pod" && m.Kind != "ReplicaSet" && m.Kind != "Job" {
				t.Fatalf("%s is owned", m.Key)
			}
			if !m.Owned {
				total++
			}
		}
		s := healthscope.Summarize(judgement.Members)
		if s.Total != total || s.Ready+s.Pending+s.Failed+s.Unknown != total || s.Healthy > s.Ready+s.Pending {
			t.Fatalf("summary %+v of %d members", s, total)
		}
	})
}
