package healthscope_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

func TestMarkUnreachable(t *testing.T) {
	t.Parallel()
	loss := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	key := healthscope.Key{Cluster: "edge01", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	owner := &healthscope.Owner{Group: "apps", Kind: "ReplicaSet", Name: "web-1"}
	labels := map[string]string{"app.kubernetes.io/name": "web"}
	was := healthscope.Member{
		Result: healthscope.Result{
			Key: key, Version: "v1", UID: "u", State: healthscope.Failed, Reason: "CrashLoopBackOff", Message: "container \"web\" crashes",
			Serving: true, Suspended: true, Warning: true, Since: loss.Add(-time.Hour), Owner: owner, Labels: labels,
			Replicas: &healthscope.Replicas{Ready: 1, Desired: 2}, ProgressDeadline: time.Minute,
		},
		Owned: true, Counts: healthscope.Failed, StoppedServing: loss.Add(-time.Minute), Cause: "Pod web-1-x: crashes",
	}
	want := healthscope.Member{
		Result: healthscope.Result{
			Key: key, Version: "v1", UID: "u", State: healthscope.Unknown, Reason: healthscope.ReasonClusterUnreachable,
			Message: "no answer; last seen Failed (CrashLoopBackOff)", Since: loss, Owner: owner, Labels: labels,
		},
		Owned: true, Counts: healthscope.Unknown, LastState: healthscope.Failed,
	}
	before := was
	got := healthscope.MarkUnreachable([]healthscope.Member{was}, healthscope.ReasonClusterUnreachable, "no answer", loss)
	if diff := cmp.Diff([]healthscope.Member{want}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, was); diff != "" {
		t.Errorf("the member itself has changed:\n%s", diff)
	}

	again := healthscope.MarkUnreachable(got, healthscope.ReasonMonitorStale, "no renewal", loss.Add(time.Minute))
	if again[0].LastState != healthscope.Failed || again[0].Message != "no renewal; last seen Failed" || again[0].Reason != healthscope.ReasonMonitorStale {
		t.Errorf("lost again it is %+v", again[0])
	}
	if healthscope.MarkUnreachable(nil, healthscope.ReasonMonitorStale, "", loss) != nil {
		t.Error("out of nothing came something")
	}
}

// TestUnreachableMembersAreUnknown asserts that members of an unreachable cluster count as Unknown only, and that none is
// missing in the counts.
func TestUnreachableMembersAreUnknown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOf(rapid.Custom(func(t *rapid.T) healthscope.Member {
			state := rapid.SampledFrom(healthscope.States()).Draw(t, "state")
			return healthscope.Member{
				Result: healthscope.Result{Key: healthscope.Key{Name: rapid.StringN(1, 3, 9).Draw(t, "name")}, State: state, Serving: rapid.Bool().Draw(t, "serving")},
				Counts: state, Owned: rapid.Bool().Draw(t, "owned"),
			}
		})).Draw(t, "members")
		lost := healthscope.MarkUnreachable(members, healthscope.ReasonClusterUnreachable, "no answer", time.Unix(1000, 0))
		before, after := healthscope.Summarize(members), healthscope.Summarize(lost)
		if after != before.MarkUnreachable() || after.Unknown != before.Total {
			t.Fatalf("%+v became %+v", before, after)
		}
		for i, m := range lost {
			if m.Key != members[i].Key || m.Owned != members[i].Owned || m.Healthy() || m.LastState != members[i].State {
				t.Fatalf("%+v became %+v", members[i], m)
			}
		}
	})
}
