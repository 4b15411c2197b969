package scope

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// scopeHistory judges one scope repeatedly, like a controller that may be restarted.
type scopeHistory struct {
	scope *corev1alpha2.HealthScope
	since *history
	w     world
}

func newScopeHistory(list ...corev1alpha2.WorkloadReference) *scopeHistory {
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: list})
	return &scopeHistory{scope: scope, since: newHistory(&scope.Status)}
}

// restart drops all state that is not in the scope's status.
func (l *scopeHistory) restart() { l.since = newHistory(&l.scope.Status) }

// judge writes the scope's status, as the reconciler does, and returns it.
func (l *scopeHistory) judge(policy healthscope.Policy, now time.Time) corev1alpha2.HealthScopeStatus {
	v := decide(&l.scope.Spec, gatherIn(l.w, l.scope, time.Time{}), l.since, policy, now)
	l.scope.Status = newStatus(l.scope, v, externalStatus{state: l.w.State}, now)
	return l.scope.Status
}

func TestSince(t *testing.T) {
	t.Parallel()
	policy := healthscope.DefaultPolicy()
	young := policy
	young.FailureGrace = time.Minute
	type step struct {
		after   time.Duration
		objects []healthscope.Result
		restart bool
		state   healthscope.State
		reason  healthscope.Reason
		since   time.Duration
	}
	pending := []healthscope.Result{deployment("web", healthscope.Pending, 1, 3)}
	failed := []healthscope.Result{deployment("web", healthscope.Failed, 1, 3)}
	quick := []healthscope.Result{pending[0]}
	quick[0].ProgressDeadline = 100 * time.Second
	cases := map[string]struct {
		reason string
		policy healthscope.Policy
		steps  []step
	}{
		"SameState": {
			policy: policy,
			steps: []step{
				{after: 0, objects: pending, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 10 * time.Second, objects: pending, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 20 * time.Second, objects: pending, restart: true, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
			},
		},
		"AnotherState": {
			policy: policy,
			steps: []step{
				{after: 0, objects: pending, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 10 * time.Second, objects: failed, state: healthscope.Failed, reason: healthscope.ReasonProgressDeadlineExceeded, since: 10 * time.Second},
				{after: 20 * time.Second, objects: pending, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 20 * time.Second},
			},
		},
		"PendingTimeoutSurvivesARestart": {
			reason: "The deadline does not start again, and since does not move.",
			policy: policy,
			steps: []step{
				{after: 0, objects: pending, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 601 * time.Second, objects: pending, state: healthscope.Failed, reason: healthscope.ReasonPendingTimeout, since: 600 * time.Second},
				{after: 700 * time.Second, objects: pending, restart: true, state: healthscope.Failed, reason: healthscope.ReasonPendingTimeout, since: 600 * time.Second},
				{after: 800 * time.Second, objects: pending, restart: true, state: healthscope.Failed, reason: healthscope.ReasonPendingTimeout, since: 600 * time.Second},
			},
		},
		"OwnDeadlineSurvivesARestart": {
			policy: policy,
			steps: []step{
				{after: 0, objects: quick, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 50 * time.Second, objects: quick, restart: true, state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, since: 0},
				{after: 101 * time.Second, objects: quick, state: healthscope.Failed, reason: healthscope.ReasonPendingTimeout, since: 100 * time.Second},
				{after: 102 * time.Second, objects: quick, restart: true, state: healthscope.Failed, reason: healthscope.ReasonPendingTimeout, since: 100 * time.Second},
			},
		},
		"MissingSurvivesARestart": {
			policy: policy,
			steps: []step{
				{after: 0, state: healthscope.NotPresent, reason: healthscope.ReasonNotFound, since: 0},
				{after: 90 * time.Second, restart: true, state: healthscope.NotPresent, reason: healthscope.ReasonNotFound, since: 0},
			},
		},
		"YoungFailureSurvivesARestart": {
			reason: "The status calls a young failure Pending.",
			policy: young,
			steps: []step{
				{after: 0, objects: failed, state: healthscope.Pending, reason: healthscope.ReasonProgressDeadlineExceeded, since: 0},
				{after: 30 * time.Second, objects: failed, restart: true, state: healthscope.Pending, reason: healthscope.ReasonProgressDeadlineExceeded, since: 0},
				{after: 61 * time.Second, objects: failed, state: healthscope.Failed, reason: healthscope.ReasonProgressDeadlineExceeded, since: 0},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newScopeHistory(deploymentRef("web"))
			for i, s := range c.steps {
				l.w = withDeployments(s.objects...)
				if s.restart {
					l.restart()
				}
				culprit := only(t, l.judge(c.policy, noon.Add(s.after)).Culprits)
				got := step{
					state: healthscope.State(culprit.State), reason: healthscope.Reason(culprit.Reason), since: culprit.Since.Sub(noon),
				}
				want := step{state: s.state, reason: s.reason, since: s.since}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
					t.Errorf("step %d: %s -want +got:\n%s", i, c.reason, diff)
				}
			}
		})
	}
}

// TestRecoveryHold: a failure that has ended is still shown for RecoveryHold, also across a restart.
func TestRecoveryHold(t *testing.T) {
	t.Parallel()
	policy := healthscope.DefaultPolicy()
	policy.RecoveryHold = time.Minute
	for name, restart := range map[string]bool{"going on": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newScopeHistory(deploymentRef("web"))
			l.w = withDeployments(deployment("web", healthscope.Failed, 1, 3))
			l.judge(policy, noon)
			l.w = withDeployments(deployment("web", healthscope.Ready, 3, 3))
			if restart {
				l.judge(policy, noon.Add(5*time.Second))
				l.restart()
			}
			if s := l.judge(policy, noon.Add(10*time.Second)); s.Summary.Failed != 1 {
				t.Errorf("young health makes it %+v", s.Summary)
			}
			if s := l.judge(policy, noon.Add(71*time.Second)); s.Summary.Ready != 1 {
				t.Errorf("after the hold it is %+v", s.Summary)
			}
		})
	}
}

func TestRecreatedObjectHasNewSince(t *testing.T) {
	t.Parallel()
	l := newScopeHistory(deploymentRef("web"))
	l.w = withDeployments()
	l.judge(healthscope.DefaultPolicy(), noon)
	spec := l.scope.Spec
	l.scope.Spec = corev1alpha2.HealthScopeSpec{}
	l.judge(healthscope.DefaultPolicy(), noon.Add(time.Minute))
	l.scope.Spec = spec
	culprit := only(t, l.judge(healthscope.DefaultPolicy(), noon.Add(time.Hour)).Culprits)
	if want := noon.Add(time.Hour); !culprit.Since.Time.Equal(want) {
		t.Errorf("a reference that was taken away for a while is missing since %s, want %s", culprit.Since, want)
	}
}

func TestTwoReferencesToOneObjectAreStable(t *testing.T) {
	t.Parallel()
	// One reference is to the existing Deployment, the other one to a former Deployment. Their states always differ.
	former := deploymentRef("web")
	former.UID = "former"
	l := newScopeHistory(deploymentRef("web"), former)
	l.w = withDeployments(deployment("web", healthscope.Ready, 3, 3))
	first := l.judge(healthscope.DefaultPolicy(), noon)
	for _, after := range []time.Duration{time.Second, time.Minute, time.Hour} {
		got := l.judge(healthscope.DefaultPolicy(), noon.Add(after))
		if diff := cmp.Diff(first.Culprits, got.Culprits); diff != "" {
			t.Errorf("after %s since has moved by itself: -want +got:\n%s", after, diff)
		}
	}
}

// listOf is a cache that holds scopes.
type listOf struct {
	client.Reader

	scopes []corev1alpha2.HealthScope
	err    error
}

func (l listOf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if scopes, ok := list.(*corev1alpha2.HealthScopeList); ok {
		scopes.Items = l.scopes
	}
	return l.err
}

// TestPast: the history comes from the statuses of all scopes. If two of them name the same object, the later change counts.
func TestPast(t *testing.T) {
	t.Parallel()
	culprit := func(name string, state healthscope.State, after time.Duration) corev1alpha2.Culprit {
		since := metav1.NewTime(noon.Add(after))
		return corev1alpha2.Culprit{Cluster: hub, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name, State: string(state), Reason: "Why", Since: &since}
	}
	timeless := culprit("timeless", healthscope.Failed, 0)
	timeless.Since = nil
	statuses := [][]corev1alpha2.Culprit{
		{culprit("web", healthscope.Pending, 0), timeless}, {culprit("web", healthscope.Failed, time.Minute), culprit("db", healthscope.Pending, 0)}, {culprit("web", healthscope.Unknown, time.Second)},
	}
	var l listOf
	for _, culprits := range statuses {
		l.scopes = append(l.scopes, corev1alpha2.HealthScope{Status: corev1alpha2.HealthScopeStatus{Culprits: culprits}})
	}
	got, err := ReadHistory(l)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) healthscope.Key {
		return healthscope.Key{Cluster: hub, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}
	}
	want := map[healthscope.Key]fleet.Observation{
		key("web"): {State: healthscope.Failed, Reason: "Why", Since: noon.Add(time.Minute)},
		key("db"):  {State: healthscope.Pending, Reason: "Why", Since: noon},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.err = errors.New("no cache")
	if _, err := ReadHistory(l)(t.Context()); !errors.Is(err, l.err) {
		t.Errorf("want the cache's error, got %v", err)
	}
}
