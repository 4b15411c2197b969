package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// noon is the time of the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// web returns a result for the Deployment "web" without times.
func web(state healthscope.State, reason healthscope.Reason) healthscope.Result {
	return healthscope.Result{
		Key:   healthscope.Key{Cluster: "local", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		State: state, Reason: reason,
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	policy := healthscope.DefaultPolicy()
	young := policy
	young.FailureGrace = time.Minute
	pending := web(healthscope.Pending, healthscope.ReasonReplicasNotReady)
	failed := web(healthscope.Failed, healthscope.ReasonReplicaFailure)
	ready := web(healthscope.Ready, "")
	own := pending
	own.Since = noon.Add(-time.Hour)
	uid := func(r healthscope.Result, uid string) healthscope.Result {
		r.UID = uid
		return r
	}
	slow := pending
	slow.ProgressDeadline = 100 * time.Second
	type step struct {
		at     time.Duration
		result *healthscope.Result
		want   time.Duration
		never  bool
	}
	cases := map[string]struct {
		policy healthscope.Policy
		past   *Observation
		steps  []step
	}{
		"the same state":                        {steps: []step{{at: 0, result: &pending}, {at: time.Minute, result: &pending}}},
		"another state":                         {steps: []step{{at: 0, result: &pending}, {at: time.Minute, result: &ready, want: time.Minute}, {at: time.Hour, result: &pending, want: time.Hour}}},
		"ready at first sight":                  {steps: []step{{at: 0, result: &ready, never: true}, {at: time.Minute, result: &ready, never: true}, {at: time.Hour, result: &failed, want: time.Hour}}},
		"not named while it is away":            {steps: []step{{at: 0, result: &pending}, {at: time.Minute}, {at: time.Hour, result: &pending, want: time.Hour}}},
		"created again":                         {steps: []step{{at: 0, result: new(uid(pending, "a"))}, {at: time.Minute, result: new(uid(pending, "b")), want: time.Minute}}},
		"a uid that was not known":              {steps: []step{{at: 0, result: &pending}, {at: time.Minute, result: new(uid(pending, "b"))}}},
		"a time of its own":                     {steps: []step{{at: 0, result: &own, want: -time.Hour}}},
		"remembered":                            {past: &Observation{State: healthscope.Pending, Since: noon.Add(-time.Hour)}, steps: []step{{at: 0, result: &pending, want: -time.Hour}}},
		"remembered in another state":           {past: &Observation{State: healthscope.Failed, Reason: healthscope.ReasonReplicaFailure, Since: noon.Add(-time.Hour)}, steps: []step{{at: 0, result: &pending}}},
		"remembered for its timeout":            {past: &Observation{State: healthscope.Failed, Reason: healthscope.ReasonPendingTimeout, Since: noon.Add(-time.Hour)}, steps: []step{{at: 0, result: &pending, want: -time.Hour - 600*time.Second}}},
		"remembered for a timeout of its own":   {past: &Observation{State: healthscope.Failed, Reason: healthscope.ReasonPendingTimeout, Since: noon.Add(-time.Hour)}, steps: []step{{at: 0, result: &slow, want: -time.Hour - 100*time.Second}}},
		"remembered as a young failure":         {policy: young, past: &Observation{State: healthscope.Pending, Reason: healthscope.ReasonReplicaFailure, Since: noon.Add(-30 * time.Second)}, steps: []step{{at: 0, result: &failed, want: -30 * time.Second}}},
		"a clock that was an hour ahead":        {steps: []step{{at: time.Hour, result: &pending, want: time.Hour}, {at: 0, result: &pending}, {at: time.Minute, result: &pending}, {at: 2 * time.Hour, result: &pending}}},
		"remembered by a clock that was ahead":  {past: &Observation{State: healthscope.Pending, Since: noon.Add(time.Hour)}, steps: []step{{at: 0, result: &pending}, {at: time.Minute, result: &pending}}},
		"another state after the clock was set": {steps: []step{{at: time.Hour, result: &pending, want: time.Hour}, {at: 0, result: &failed}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.policy == (healthscope.Policy{}) {
				tc.policy = policy
			}
			m := NewMemory(nil)
			if tc.past != nil {
				m = NewMemory(map[healthscope.Key]Observation{pending.Key: *tc.past})
			}
			for i, s := range tc.steps {
				var results []healthscope.Result
				if s.result != nil {
					results = append(results, *s.result)
				}
				for _, r := range m.Resume(results, tc.policy, noon.Add(s.at).Add(123*time.Millisecond)) {
					want := noon.Add(s.want)
					if s.never {
						want = time.Time{}
					}
					if !r.Since.Equal(want) {
						t.Errorf("step %d: since %s, want %s", i, r.Since, want)
					}
				}
			}
		})
	}
}

// TestDuplicateResultsKeepTheTime: the bundle of another monitor may name an object twice. Its states must not alternate.
func TestDuplicateResultsKeepTheTime(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	both := func() []healthscope.Result {
		return []healthscope.Result{web(healthscope.Ready, ""), web(healthscope.Pending, healthscope.ReasonReplicasNotReady)}
	}
	first := m.Resume(both(), healthscope.DefaultPolicy(), noon)
	second := m.Resume(both(), healthscope.DefaultPolicy(), noon.Add(time.Minute))
	if diff := cmp.Diff(first, second); diff != "" || len(first) != 1 || first[0].State != healthscope.Pending {
		t.Errorf("%+v, later -want +got:\n%s", first, diff)
	}
}

// TestMemoryToleratesClockChanges: for any change of the clock, no time is in the future. A time moves only with the state or
// because the clock was set back.
func TestMemoryToleratesClockChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(nil)
		at := noon
		var before healthscope.Result
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "seconds")) * time.Second)
			state := rapid.SampledFrom([]healthscope.State{healthscope.Ready, healthscope.Pending, healthscope.Failed}).Draw(t, "state")
			r := m.Resume([]healthscope.Result{web(state, "")}, healthscope.DefaultPolicy(), at)[0]
			if r.Since.After(at) {
				t.Fatalf("since %s is after %s", r.Since, at)
			}
			if before.State == r.State && !before.Since.After(at) && !r.Since.Equal(before.Since) {
				t.Fatalf("since has moved from %s to %s without a reason", before.Since, r.Since)
			}
			before = r
		}
	})
}

func TestCarryOver(t *testing.T) {
	t.Parallel()
	old := noon.Add(-5 * time.Minute)
	pod := healthscope.Result{
		Key:   healthscope.Key{Cluster: "local", Kind: "Pod", Namespace: "shop", Name: "web-1"},
		State: healthscope.Failed, Reason: "CrashLoopBackOff", Owner: &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: "web"},
	}
	otherPod := pod
	otherPod.Name, otherPod.Reason = "web-2", "ImagePullBackOff"
	workload := web(healthscope.Pending, healthscope.ReasonReplicasNotReady)
	past := map[healthscope.Key]Observation{workload.Key: {State: healthscope.Failed, Reason: "CrashLoopBackOff", Since: old}}
	got := carryOver(past, []healthscope.Result{pod, otherPod, workload})
	want := map[healthscope.Key]Observation{
		workload.Key: {State: healthscope.Pending, Reason: "CrashLoopBackOff", Since: old},
		pod.Key:      {State: healthscope.Failed, Reason: "CrashLoopBackOff", Since: old},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// A status is therefore the same after a restart.
	results := NewMemory(got).Resume([]healthscope.Result{pod, workload}, healthscope.DefaultPolicy(), noon)
	for _, m := range healthscope.Judge(results, healthscope.DefaultPolicy(), noon).Members {
		if m.State != healthscope.Failed || !m.Since.Equal(old) {
			t.Errorf("%s is %s since %s", m.Key, m.State, m.Since)
		}
	}
}

// TestStatesAreCarriedOverARestart: the last status of a bundle is an input of the next judgement, also after a restart. The
// damping policies need it.
func TestStatesAreCarriedOverARestart(t *testing.T) {
	t.Parallel()
	policy := healthscope.DefaultPolicy()
	policy.RecoveryHold = time.Minute
	key := BundleKey{Cluster: "local", Namespace: "shop", Name: "7-web"}
	status := func(state healthscope.State, since time.Time) *k8spluginv1alpha1.ResourceBundleState {
		at := metav1.NewTime(since)
		return &k8spluginv1alpha1.ResourceBundleState{
			ObjectMeta: metav1.ObjectMeta{UID: "b"},
			Status: k8spluginv1alpha1.ResourceBundleStateStatus{
				Summary:   &k8spluginv1alpha1.ResourceCounts{State: string(state), Total: 1},
				Resources: []k8spluginv1alpha1.ResourceHealth{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", State: string(state), Since: &at}},
			},
		}
	}
	clock := clocktesting.NewFakeClock(noon)
	newHub := func(past map[healthscope.Key]Observation) func(*k8spluginv1alpha1.ResourceBundleState) healthscope.Member {
		k := &bundleSyncer{cluster: "local", view: openView("local"), policy: policy, clock: clock, memories: map[BundleKey]*bundleMemory{}, past: past}
		return func(b *k8spluginv1alpha1.ResourceBundleState) healthscope.Member {
			k.judge(key, newCachedBundle("local", b, nil))
			return k.view.Named("shop", "7-web")[0].Members[0]
		}
	}
	look := newHub(nil)
	if m := look(status(healthscope.Failed, noon)); m.State != healthscope.Failed {
		t.Fatalf("it is %s", m.State)
	}
	clock.SetTime(noon.Add(10 * time.Second))
	held := look(status(healthscope.Ready, noon.Add(10*time.Second)))
	if held.State != healthscope.Failed || !held.Since.Equal(noon) {
		t.Errorf("young health makes it %s since %s", held.State, held.Since)
	}
	past := map[healthscope.Key]Observation{held.Key: {State: held.State, Reason: held.Reason, Since: held.Since}}
	if m := newHub(past)(status(healthscope.Ready, noon.Add(10*time.Second))); m.State != healthscope.Failed {
		t.Errorf("after a restart it is %s", m.State)
	}
	another := status(healthscope.Ready, noon.Add(10*time.Second))
	another.UID = "c"
	if m := look(another); m.State != healthscope.Ready {
		t.Errorf("another bundle of the same name is %s for the failure of the first", m.State)
	}
}
