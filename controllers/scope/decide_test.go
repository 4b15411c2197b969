package scope

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// counts returns a summary with these counts.
func counts(total, ready, pending, failed, unknown, healthy int) healthscope.Summary {
	return healthscope.Summary{Total: total, Ready: ready, Pending: pending, Failed: failed, Unknown: unknown, Healthy: healthy}
}

// rolling returns a Deployment in a rolling update with a surge pod. It is Pending, but there is no outage.
func rolling() healthscope.Member {
	m := member(hub, "Deployment", "web", healthscope.Pending, healthscope.ReasonRolloutInProgress)
	m.Serving, m.Cause = true, "Pod web-2: ContainerCreating"
	return m
}

func TestDecide(t *testing.T) {
	t.Parallel()
	failedDB := member(hub, "StatefulSet", "db", healthscope.Failed, "CrashLoopBackOff")
	unknownPDB := member(hub, "PodDisruptionBudget", "pdb", healthscope.Unknown, healthscope.ReasonForbidden)
	readyPod := owned(member(hub, "Pod", "web-1", healthscope.Ready, ""))
	crashingPod := owned(member(hub, "Pod", "web-2", healthscope.Failed, "CrashLoopBackOff"))
	one := func(members ...healthscope.Member) []*fleet.Bundle {
		return []*fleet.Bundle{bundleOf(hub, "1-sink", members...)}
	}
	app := func(name string, list ...corev1alpha2.WorkloadReference) corev1alpha2.ScopeApp {
		return corev1alpha2.ScopeApp{Name: name, WorkloadReferences: list}
	}
	cases := map[string]struct {
		reason          string
		rollup          *corev1alpha2.Rollup
		apps            []corev1alpha2.ScopeApp
		bundles         []*fleet.Bundle
		health          healthscope.Health
		summary         healthscope.Summary
		missingRequired []string
	}{
		"Empty": {
			reason: "Nothing healthy was found.",
			apps:   []corev1alpha2.ScopeApp{}, health: healthscope.HealthUnknown,
		},
		"OwnedDoNotCount": {
			reason:  "A pod that crashes beside others explains its Deployment, which counts.",
			bundles: one(readyWeb, readyPod, crashingPod),
			health:  healthscope.Healthy, summary: counts(1, 1, 0, 0, 0, 1),
		},
		"Surge": {
			reason:  "A rolling update is no outage.",
			bundles: one(rolling(), readyPod, owned(member(hub, "Pod", "web-2", healthscope.Pending, "ContainerCreating"))),
			health:  healthscope.Healthy, summary: counts(1, 0, 1, 0, 0, 1),
		},
		"PendingWithoutServing": {
			bundles: one(member(hub, "Deployment", "web", healthscope.Pending, healthscope.ReasonReplicasNotReady)),
			health:  healthscope.Unhealthy, summary: counts(1, 0, 1, 0, 0, 0),
		},
		"Terminating": {
			bundles: one(member(hub, "Deployment", "web", healthscope.Terminating, healthscope.ReasonDeleting)),
			health:  healthscope.Unhealthy, summary: counts(1, 0, 1, 0, 0, 0),
		},
		"OneFailed": {
			bundles: one(readyWeb, failedDB),
			health:  healthscope.Unhealthy, summary: counts(2, 1, 0, 1, 0, 1),
		},
		"OnlyUnknownInTheWay": {
			bundles: one(readyWeb, unknownPDB),
			health:  healthscope.HealthUnknown, summary: counts(2, 1, 0, 0, 1, 1),
		},
		"UnknownBesideFailed": {
			bundles: one(readyWeb, failedDB, unknownPDB),
			health:  healthscope.Unhealthy, summary: counts(3, 1, 0, 1, 1, 1),
		},
		"ReachedTwice": {
			reason:  "A bundle in two apps, and a direct reference to what is in it, make one member.",
			apps:    []corev1alpha2.ScopeApp{app("a", bundleRef("1-sink")), app("b", bundleRef("1-sink"), deploymentRef("web"))},
			bundles: one(readyWeb),
			health:  healthscope.Healthy, summary: counts(1, 1, 0, 0, 0, 1),
		},
		"SameNameInTwoClusters": {
			bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "1-sink", readyWeb2)},
			health:  healthscope.Healthy, summary: counts(2, 2, 0, 0, 0, 2),
		},
		"PercentageReached": {
			rollup:  &corev1alpha2.Rollup{HealthyPercentage: new(int32(50))},
			bundles: one(readyWeb, failedDB),
			health:  healthscope.Healthy, summary: counts(2, 1, 0, 1, 0, 1),
		},
		"PercentageMissed": {
			rollup:  &corev1alpha2.Rollup{HealthyPercentage: new(int32(51))},
			bundles: one(readyWeb, failedDB),
			health:  healthscope.Unhealthy, summary: counts(2, 1, 0, 1, 0, 1),
		},
		"PercentageZero": {
			reason:  "The API refuses it today; one that is stored asks for one healthy member at least.",
			rollup:  &corev1alpha2.Rollup{HealthyPercentage: new(int32(0))},
			bundles: one(failedDB),
			health:  healthscope.Unhealthy, summary: counts(1, 0, 0, 1, 0, 0),
		},
		"Ignored": {
			rollup:  &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "PodDisruptionBudget"}}},
			bundles: one(readyWeb, unknownPDB),
			health:  healthscope.Healthy, summary: counts(1, 1, 0, 0, 0, 1),
		},
		"IgnoredMustMatchInAll": {
			rollup: &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{
				{Kind: "PodDisruptionBudget", Group: "apps"}, {Kind: "PodDisruptionBudget", Name: "other"}, {Kind: "PodDisruptionBudget", App: "other"},
			}},
			bundles: one(readyWeb, unknownPDB),
			health:  healthscope.HealthUnknown, summary: counts(2, 1, 0, 0, 1, 1),
		},
		"IgnoredByApp": {
			reason:  "An object in two apps is in the first one.",
			rollup:  &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{App: "b"}}},
			apps:    []corev1alpha2.ScopeApp{app("b", bundleRef("1-sink"), bundleRef("gone")), app("a", bundleRef("1-sink"))},
			bundles: one(failedDB),
			health:  healthscope.Unhealthy, summary: counts(1, 0, 0, 1, 0, 0),
		},
		"RequiredHealthy": {
			rollup:  &corev1alpha2.Rollup{HealthyPercentage: new(int32(50)), Required: []string{"a"}},
			apps:    []corev1alpha2.ScopeApp{app("a", deploymentRef("web")), app("b", deploymentRef("broken"))},
			bundles: nil,
			health:  healthscope.Healthy, summary: counts(2, 1, 0, 1, 0, 1),
		},
		"RequiredUnhealthy": {
			rollup: &corev1alpha2.Rollup{HealthyPercentage: new(int32(50)), Required: []string{"b"}},
			apps:   []corev1alpha2.ScopeApp{app("a", deploymentRef("web")), app("b", deploymentRef("broken"))},
			health: healthscope.Unhealthy, summary: counts(2, 1, 0, 1, 0, 1),
		},
		"RequiredUnknown": {
			rollup:  &corev1alpha2.Rollup{HealthyPercentage: new(int32(0)), Required: []string{"a"}},
			apps:    []corev1alpha2.ScopeApp{app("a", bundleRef("1-sink"))},
			bundles: one(unknownPDB),
			health:  healthscope.HealthUnknown, summary: counts(1, 0, 0, 0, 1, 0),
		},
		"RequiredMissing": {
			rollup: &corev1alpha2.Rollup{Required: []string{"z", "c"}},
			apps:   []corev1alpha2.ScopeApp{app("a", deploymentRef("web"))},
			health: healthscope.Unhealthy, summary: counts(1, 1, 0, 0, 0, 1), missingRequired: []string{"c", "z"},
		},
		"RequiredSharesItsMembers": {
			reason:  "That an object counts in another app does not make this one empty.",
			rollup:  &corev1alpha2.Rollup{Required: []string{"a", "b"}},
			apps:    []corev1alpha2.ScopeApp{app("a", bundleRef("1-sink")), app("b", bundleRef("1-sink"))},
			bundles: one(readyWeb),
			health:  healthscope.Healthy, summary: counts(1, 1, 0, 0, 0, 1),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withDeployments(deployment("web", healthscope.Ready, 3, 3), deployment("broken", healthscope.Failed, 0, 3))
			w.clusters, w.bundles = []string{hub, edge1, edge2}, c.bundles
			spec := corev1alpha2.HealthScopeSpec{Apps: c.apps, Rollup: c.rollup}
			if c.apps == nil {
				spec.WorkloadReferences = refs(bundleRef("1-sink"))
			}
			v := judgeIn(w, scopeOf(spec), noon)
			if v.Health != c.health {
				t.Errorf("%s health: want %s, got %s", c.reason, c.health, v.Health)
			}
			if diff := cmp.Diff(c.summary, v.summary); diff != "" {
				t.Errorf("%s summary: -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.missingRequired, v.missingRequired); diff != "" {
				t.Errorf("%s absent: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestResultThatKnowsMoreCounts(t *testing.T) {
	t.Parallel()
	directlyPending := deployment("web", healthscope.Pending, 2, 3)
	withCause := member(hub, "Deployment", "web", healthscope.Pending, healthscope.ReasonReplicasNotReady)
	withCause.Cause = "Pod web-2: back-off"
	forbidden := healthscope.Result{Key: readyWeb.Key, Version: "v1", State: healthscope.Unknown, Reason: healthscope.ReasonForbidden}
	directPod := healthscope.Result{Key: healthscope.Key{Cluster: hub, Kind: "Pod", Namespace: "shop", Name: "web-1"}, State: healthscope.Failed, Reason: "CrashLoopBackOff"}
	cases := map[string]struct {
		reason string
		bundle healthscope.Member
		direct healthscope.Result
		want   func(AppMember) bool
	}{
		"Cause": {
			reason: "The bundle has seen the pods.",
			bundle: withCause, direct: directlyPending,
			want: func(p AppMember) bool { return p.Cause != "" },
		},
		"WorseState": {
			reason: "Until both agree the worse one is believed.",
			bundle: readyWeb, direct: directlyPending,
			want: func(p AppMember) bool { return p.State == healthscope.Pending },
		},
		"Tie": {
			reason: "Neither knows more, but it must be the same one every time.",
			bundle: member(hub, "Deployment", "web", healthscope.Unknown, healthscope.ReasonNotSynced), direct: forbidden,
			want: func(p AppMember) bool { return p.Reason == healthscope.ReasonForbidden },
		},
		"Owned": {
			reason: "A pod of a bundle does not count because it is referred to as well.",
			bundle: owned(member(hub, "Pod", "web-1", healthscope.Ready, "")), direct: directPod,
			want: func(p AppMember) bool { return !p.Contributes() },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finding1 := &finding{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", c.bundle)}}
			finding2 := &finding{results: []healthscope.Result{c.direct}}
			for _, findings := range [][]*finding{{finding1, finding2}, {finding2, finding1}} {
				v := decide(&corev1alpha2.HealthScopeSpec{}, gathered{findings: findings}, newHistory(&corev1alpha2.HealthScopeStatus{}), healthscope.DefaultPolicy(), noon)
				if p := only(t, v.Members); !c.want(p) {
					t.Errorf("%s got %+v", c.reason, p)
				}
			}
		})
	}
}

func TestTheFirstAppHasTheObjectAndItsLinks(t *testing.T) {
	t.Parallel()
	linksB, linksC := &corev1alpha2.InventoryLinks{GenericVNFID: "b"}, &corev1alpha2.InventoryLinks{GenericVNFID: "c"}
	result := []healthscope.Result{deployment("web", healthscope.Ready, 1, 1)}
	outside := &finding{results: result}
	a, b, c := &finding{app: "a", results: result}, &finding{app: "b", links: linksB, results: result}, &finding{app: "c", links: linksC, results: result}
	cases := map[string]struct {
		findings  []*finding
		wantApp   string
		wantLinks *corev1alpha2.InventoryLinks
	}{
		"OutsideApps":          {[]*finding{outside}, "", nil},
		"AppBeforeNone":        {[]*finding{outside, b}, "b", linksB},
		"FirstName":            {[]*finding{c, b}, "b", linksB},
		"LinksOfTheNext":       {[]*finding{c, b, a}, "a", linksB},
		"LinksOfTheNextAgain":  {[]*finding{a, c}, "a", linksC},
		"LinksOfNoneAreNoLoss": {[]*finding{b, outside, a}, "a", linksB},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := decide(&corev1alpha2.HealthScopeSpec{}, gathered{findings: tc.findings}, newHistory(&corev1alpha2.HealthScopeStatus{}), healthscope.DefaultPolicy(), noon)
			p := only(t, v.Members)
			if p.App != tc.wantApp || p.Links != tc.wantLinks {
				t.Errorf("want app %q with links %v, got %q with %v", tc.wantApp, tc.wantLinks, p.App, p.Links)
			}
		})
	}
}

func TestNextCheckIsTheNearestDeadline(t *testing.T) {
	t.Parallel()
	slow := deployment("slow", healthscope.Pending, 0, 1)
	quick := deployment("quick", healthscope.Pending, 0, 1)
	quick.ProgressDeadline = 90 * time.Second
	w := withDeployments(slow, quick)
	cases := map[string]struct {
		refs []corev1alpha2.WorkloadReference
		want time.Duration
	}{
		"None":            {refs(), 0},
		"Policy":          {refs(deploymentRef("slow")), 600 * time.Second},
		"Workload":        {refs(deploymentRef("slow"), deploymentRef("quick")), 90 * time.Second},
		"MissingIsSooner": {refs(deploymentRef("slow"), deploymentRef("quick"), deploymentRef("gone")), 60 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judgeIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: c.refs}), noon)
			if got := healthscope.Until(v.nextCheck, noon); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
		})
	}
}

// TestResultFromReadableSourceCounts: if two sources have a result for one object, a source that cannot read it does not count
// beside one that can.
func TestResultFromReadableSourceCounts(t *testing.T) {
	t.Parallel()
	beta := deploymentRef("web")
	beta.APIVersion = "apps/v1beta1"
	forbidden := deployment("web", healthscope.Unknown, 0, 0)
	forbidden.Reason = healthscope.ReasonForbidden
	odd := deployment("web", healthscope.Unknown, 0, 0)
	odd.Reason = healthscope.ReasonHealthCheckError
	inBundle := withDeployments(forbidden)
	inBundle.bundles = []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}
	seen := withDeployments(odd)
	seen.bundles = inBundle.bundles
	unreadableBundle := withDeployments(deployment("web", healthscope.Ready, 1, 1))
	unreadableBundle.bundles = []*fleet.Bundle{bundleOf(hub, "1-sink", member(hub, "Deployment", "web", healthscope.Unknown, healthscope.ReasonNotSynced))}
	cases := map[string]struct {
		w    world
		refs []corev1alpha2.WorkloadReference
		want healthscope.State
	}{
		"ForbiddenBesideBundle":  {inBundle, refs(deploymentRef("web"), bundleRef("1-sink")), healthscope.Ready},
		"BundleThatCannotSee":    {unreadableBundle, refs(deploymentRef("web"), bundleRef("1-sink")), healthscope.Ready},
		"VersionThatIsNotServed": {withDeployments(deployment("web", healthscope.Ready, 1, 1)), refs(deploymentRef("web"), beta), healthscope.Ready},
		"NotPresentIsSeen":       {withDeployments(), refs(deploymentRef("web"), beta), healthscope.NotPresent},
		"UnknownButSeen":         {seen, refs(deploymentRef("web"), bundleRef("1-sink")), healthscope.Unknown},
		"NobodySees":             {withDeployments(forbidden), refs(deploymentRef("web"), beta), healthscope.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				v := judgeIn(c.w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: c.refs}), noon)
				if got := only(t, v.Members); got.State != c.want {
					t.Errorf("want %s, got %s %s", c.want, got.State, got.Reason)
				}
				slices.Reverse(c.refs)
			}
		})
	}
}
