package healthscope_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

func TestTimeCounts(t *testing.T) {
	gadget := func(name string, state healthscope.State, age time.Duration) healthscope.Result {
		return result("acme.example", "Gadget", name, state, since(ago(age)), because(healthscope.ReasonNoStatus, "nothing"))
	}
	checkJudge(t, healthscope.DefaultPolicy(), map[string]judgeCase{
		"Pending within its time": {[]healthscope.Result{pod("a", healthscope.Pending, since(ago(9*time.Minute)))}, []string{"Pod/a Pending", "next check in 1m0s"}},
		"Pending at the end of its time": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(10*time.Minute)), because(healthscope.ReasonUnschedulable, "no node"))},
			[]string{"Pod/a Failed PendingTimeout: Pending for more than 10m0s: Unschedulable: no node"},
		},
		"Pending without a reason": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(time.Hour)))}, []string{"Pod/a Failed PendingTimeout: Pending for more than 10m0s: no reason given"},
		},
		"Pending and serving may last":  {[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour)), serving)}, []string{"Deployment/shop Pending"}},
		"Pending since an unknown time": {[]healthscope.Result{pod("a", healthscope.Pending)}, []string{"Pod/a Pending"}},
		"a rollout that Kubernetes times may last": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour)), func(r *healthscope.Result) { r.Timed = true })}, []string{"Deployment/shop Pending"},
		},
		"a workload and its pods have its own deadline": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, since(ago(time.Minute)), deadline(2*time.Minute)),
				pod("a", healthscope.Pending, since(ago(30*time.Second)), of("apps", "Deployment", "shop")),
			}, []string{"Pod/a Pending owned", "Deployment/shop Pending | Pod a: Pending", "next check in 1m0s"},
		},
		"a workload past its own deadline": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(2*time.Minute)), deadline(time.Minute), because(healthscope.ReasonReplicasNotReady, ""))},
			[]string{"Deployment/shop Failed PendingTimeout: Pending for more than 1m0s: ReplicasNotReady"},
		},
		"a Job may run as long as it takes": {
			[]healthscope.Result{job("import", since(ago(100*time.Hour))), job("export", since(ago(100*time.Hour)), serving)}, []string{"Job/export Pending", "Job/import Pending"},
		},
		"a Job of another group has a time": {
			[]healthscope.Result{result("batch.volcano.sh", "Job", "train", healthscope.Pending, since(ago(time.Hour)))},
			[]string{"Job/train Failed PendingTimeout: Pending for more than 10m0s: no reason given"},
		},
		"a Job's pod that does not start is its cause, for as long as the Job waits for it": {
			[]healthscope.Result{job("import", since(ago(time.Hour))), pod("a", healthscope.Pending, since(ago(time.Hour)), of("batch", "Job", "import"), because(healthscope.ReasonUnschedulable, "no node"))},
			[]string{"Pod/a Pending owned Unschedulable: no node", "Job/import Pending | Pod a: no node"},
		},
		"expected and missing, for a while": {
			[]healthscope.Result{deployment("shop", healthscope.NotPresent, since(ago(20*time.Second)))}, []string{"Deployment/shop NotPresent counts Pending", "next check in 40s"},
		},
		"expected and missing for too long": {
			[]healthscope.Result{deployment("shop", healthscope.NotPresent, since(ago(time.Minute)))}, []string{"Deployment/shop NotPresent counts Failed"},
		},
		"expected and missing since an unknown time": {[]healthscope.Result{deployment("shop", healthscope.NotPresent)}, []string{"Deployment/shop NotPresent counts Pending"}},
		"no status yet": {
			[]healthscope.Result{gadget("a", healthscope.Ready, 15*time.Second), gadget("b", healthscope.Unknown, 15*time.Second)},
			[]string{"Gadget/a Pending NotObserved: the object has no status yet", "Gadget/b Pending NotObserved: the object has no status yet", "next check in 45s"},
		},
		"no status for as long as a controller may take": {
			[]healthscope.Result{gadget("a", healthscope.Ready, time.Minute), gadget("b", healthscope.Unknown, time.Minute)},
			[]string{"Gadget/a Ready NoStatus: nothing", "Gadget/b Unknown NoStatus: nothing"},
		},
		"no status since an unknown time": {
			[]healthscope.Result{result("acme.example", "Gadget", "a", healthscope.Ready, because(healthscope.ReasonNoStatus, ""))}, []string{"Gadget/a Ready NoStatus"},
		},
		"Terminating, Unknown and Ready do not change by time": {
			[]healthscope.Result{pod("a", healthscope.Terminating, since(ago(time.Hour))), pod("b", healthscope.Unknown, since(ago(time.Hour))), pod("c", healthscope.Ready, since(ago(time.Hour)))},
			[]string{"Pod/a Terminating counts Pending", "Pod/b Unknown", "Pod/c Ready"},
		},
	})
	evicted := because("Evicted", "")
	checkJudge(t, healthscope.Policy{FailureGrace: 30 * time.Second}, map[string]judgeCase{
		"a failure within its grace": {
			[]healthscope.Result{pod("a", healthscope.Failed, since(ago(10*time.Second)), evicted)}, []string{"Pod/a Pending Evicted", "next check in 20s"},
		},
		"a failure of a pod within its grace does not fail its workload": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour))), pod("a", healthscope.Failed, since(ago(10*time.Second)), of("apps", "Deployment", "shop"), evicted)},
			[]string{"Pod/a Pending owned Evicted", "Deployment/shop Pending | Pod a: Evicted", "next check in 20s"},
		},
	})
	checkJudge(t, healthscope.Policy{}, map[string]judgeCase{
		"Pending where nothing times out": {[]healthscope.Result{pod("a", healthscope.Pending, since(ago(time.Hour)))}, []string{"Pod/a Pending"}},
		"what is missing from a moment to come is not missing yet, even without grace": {
			[]healthscope.Result{deployment("b", healthscope.NotPresent, since(noon.Add(time.Second)))}, []string{"Deployment/b NotPresent counts Pending", "next check in 1s"},
		},
	})
	checkJudge(t, healthscope.Policy{PendingTimeout: 20 * time.Second, NoStatusGrace: time.Minute}, map[string]judgeCase{
		"no status is excused for longer than Pending would be": {
			[]healthscope.Result{gadget("a", healthscope.Ready, 30*time.Second)}, []string{"Gadget/a Pending NotObserved: the object has no status yet", "next check in 30s"},
		},
	})
}

// TestAFailureBeginsWithThatOfThePod asserts that a workload has failed since its pod has, and not longer than it was Pending.
func TestAFailureBeginsWithThatOfThePod(t *testing.T) {
	for _, tc := range []struct{ pending, failed, want time.Duration }{{5 * time.Minute, time.Minute, time.Minute}, {time.Minute, time.Hour, time.Minute}} {
		members := healthscope.Judge([]healthscope.Result{
			pod("a", healthscope.Failed, since(ago(tc.failed)), of("apps", "Deployment", "shop")), deployment("shop", healthscope.Pending, since(ago(tc.pending))),
		}, healthscope.DefaultPolicy(), noon).Members
		if m := members[1]; m.State != healthscope.Failed || !m.Since.Equal(ago(tc.want)) {
			t.Errorf("Pending for %s with a pod that has failed for %s: %s since %v", tc.pending, tc.failed, m.State, m.Since)
		}
	}
}

// TestTheTimeToServeBeginsWhenServingStops judges a canary that has been paused for hours. It is Pending and serves. A moment
// without a pod is no timeout.
func TestTheTimeToServeBeginsWhenServingStops(t *testing.T) {
	const limit = 10 * time.Minute
	paused := func(change ...func(*healthscope.Result)) healthscope.Result {
		return deployment("shop", healthscope.Pending, append(change, since(ago(2*time.Hour)))...)
	}
	for name, policy := range map[string]healthscope.Policy{
		"by default": {PendingTimeout: limit}, "damped": {PendingTimeout: limit, FailureGrace: time.Second, RecoveryHold: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := life{policy: policy}
			is := func(at time.Duration, r healthscope.Result, state healthscope.State, begin, next time.Time) {
				t.Helper()
				if m := l.look(noon.Add(at), r); m.State != state || !m.Since.Equal(begin) || !l.last.NextCheck.Equal(next) {
					t.Errorf("%v after noon: %s since %v, next check at %v; want %s since %v, next check at %v", at, m.State, m.Since, l.last.NextCheck, state, begin, next)
				}
			}
			is(-time.Minute, paused(serving), healthscope.Pending, ago(2*time.Hour), time.Time{})
			is(0, paused(), healthscope.Pending, ago(2*time.Hour), noon.Add(limit))
			is(time.Second, paused(serving), healthscope.Pending, ago(2*time.Hour), time.Time{})
			stopped := time.Minute
			is(stopped, paused(), healthscope.Pending, ago(2*time.Hour), noon.Add(stopped+limit))
			is(stopped+limit-1, paused(), healthscope.Pending, ago(2*time.Hour), noon.Add(stopped+limit))
			is(stopped+limit, paused(), healthscope.Failed, noon.Add(stopped+limit), time.Time{})
			is(stopped+2*limit, paused(), healthscope.Failed, noon.Add(stopped+limit), time.Time{})
		})
	}
	t.Run("what is ready in between begins again", func(t *testing.T) {
		l := life{policy: healthscope.Policy{PendingTimeout: limit}}
		l.look(ago(time.Minute), paused(serving))
		l.look(noon, paused())
		l.look(noon.Add(time.Minute), deployment("shop", healthscope.Ready, since(noon.Add(time.Minute))))
		l.look(noon.Add(2*time.Minute), deployment("shop", healthscope.Pending, since(noon.Add(2*time.Minute))))
		if want := noon.Add(2*time.Minute + limit); !l.last.NextCheck.Equal(want) {
			t.Errorf("next check at %v, want %v", l.last.NextCheck, want)
		}
	})
}

// TestUntil asserts that a time that has come results in a positive duration. For a controller, zero means that there is nothing
// to wait for.
func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"Never": {time.Time{}, 0},
		"Later": {now.Add(time.Minute), time.Minute},
		"Now":   {now, time.Millisecond},
		"Past":  {now.Add(-time.Hour), time.Millisecond},
	} {
		if got := healthscope.Until(c.at, now); got != c.want {
			t.Errorf("%s: want %s, got %s", name, c.want, got)
		}
	}
}
