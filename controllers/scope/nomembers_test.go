package scope

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// TestScopeWithoutMembersIsNotHealthy has scopes without members, which are not healthy.
func TestScopeWithoutMembersIsNotHealthy(t *testing.T) {
	t.Parallel()
	bundle := []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}
	const byLabel = "healthscope.core.oam.dev/name=vfw"
	cases := map[string]struct {
		spec    corev1alpha2.HealthScopeSpec
		bundles []*fleet.Bundle
		ready   string
		want    []string
	}{
		"EmptySpec":           {want: []string{"no references", byLabel, `namespace "shop"`}},
		"EmptyReferences":     {spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs()}, want: []string{"no references", byLabel}},
		"AppWithoutAnything":  {spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink"}}}, want: []string{`app "sink"`, "no references and no selector"}},
		"SelectorOfNothing":   {spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", Selector: selectSink}}}, want: []string{`app "sink"`, metav1.FormatLabelSelector(selectSink)}},
		"OnlyExpectedCluster": {spec: corev1alpha2.HealthScopeSpec{ExpectedClusters: []string{edge1}}, want: []string{"expectedClusters", byLabel}},
		"OnlyProbes":          {spec: corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health"}, want: []string{"probes", byLabel}},
		"AllIgnored": {
			spec: corev1alpha2.HealthScopeSpec{
				WorkloadReferences: refs(bundleRef("1-sink")), Rollup: &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "Deployment"}}},
			},
			bundles: bundle, want: []string{"rollup.ignore", "1 resource"},
		},
		"OneAppOfTwo": {
			spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{
				{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}, {Name: "source", Selector: selectSink},
			}},
			bundles: bundle, ready: "1/1", want: []string{`app "source"`, metav1.FormatLabelSelector(selectSink)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusIn(world{clusters: []string{hub, edge1}, bundles: c.bundles}, scopeOf(c.spec), noon)
			if s.Health != corev1alpha2.UnknownHealth || s.ScopeHealthCondition.HealthStatus != corev1alpha2.StatusUnknown {
				t.Errorf("the scope is %q, and %q in OAM's words; want it unknown in both", s.Health, s.ScopeHealthCondition.HealthStatus)
			}
			if ready := c.ready; s.ResourcesReady != ready && ready != "" || ready == "" && (s.ResourcesReady != "0/0" || s.Summary.State != "Unknown") {
				t.Errorf("got %s resources ready, state %s", s.ResourcesReady, s.Summary.State)
			}
			got := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady)
			if got == nil || got.Status != metav1.ConditionUnknown || got.Reason != string(ReasonNoMembers) {
				t.Fatalf("want Ready Unknown for NoMembers, got %+v", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("the message does not say what was looked for: want %q in %q", want, got.Message)
				}
			}
			if s.FirstCulprit == "" {
				t.Error("the scope's one line for people says nothing")
			}
		})
	}
}

func TestIgnoredAppMayBeEmpty(t *testing.T) {
	t.Parallel()
	bundle := []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}
	spec := corev1alpha2.HealthScopeSpec{
		Apps: []corev1alpha2.ScopeApp{
			{Name: "copy", WorkloadReferences: refs(bundleRef("1-sink"))}, {Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}, {Name: "source", Selector: selectSink},
		},
		Rollup: &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{App: "source"}}},
	}
	s := statusIn(world{bundles: bundle}, scopeOf(spec), noon)
	if s.Health != corev1alpha2.Healthy {
		t.Errorf("one app is ignored and the others share a bundle that is well: want healthy, got %s: %+v", s.Health, s.Conditions)
	}
}

// TestAHealthyScopeNamesWhatIsNotReady has a rollout that has stopped while the old pods serve.
func TestAHealthyScopeNamesWhatIsNotReady(t *testing.T) {
	t.Parallel()
	w := world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", member(hub, "Deployment", "a", healthscope.Ready, ""), rolling())}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-sink"))}), noon)
	const want = "1/2 resources are ready; not ready is Deployment/web in local: RolloutInProgress"
	if got := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady).Message; s.Health != corev1alpha2.Healthy || got != want {
		t.Errorf("%s, %q; want %q", s.Health, got, want)
	}
}

func TestNumbersOfTheConditionAddUp(t *testing.T) {
	t.Parallel()
	surge := rolling()
	w := world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink",
		member(hub, "Deployment", "a", healthscope.Ready, ""), member(hub, "Deployment", "b", healthscope.Ready, ""), surge,
		member(hub, "Deployment", "d", healthscope.Failed, "CrashLoopBackOff"),
	)}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-sink"))}), noon)
	const want = "1 of 4 resources are not healthy; 1 is pending and serving, 2 are ready: Deployment/d in local: CrashLoopBackOff"
	if got := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady).Message; s.ResourcesReady != "2/4" || got != want {
		t.Errorf("READY %s: want %q, got %q", s.ResourcesReady, want, got)
	}
}
