package scope

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// staticProbes are Probes with a fixed report.
type staticProbes struct{ probe.Report }

func (r staticProbes) Want(types.NamespacedName, *probe.Want) probe.Report { return r.Report }
func (r staticProbes) Subscribe(func(types.NamespacedName))                {}

// probedIn returns the status of a scope with probes.
func probedIn(w world, scope *corev1alpha2.HealthScope, services ...probe.Probed) corev1alpha2.HealthScopeStatus {
	g := gathererIn(w, scope, noon)
	g.probes = staticProbes{probe.Report{Services: services}}
	return statusFrom(w, g.gather(), scope, noon)
}

// scopeWithProbes returns a scope with probes.
func scopeWithProbes() *corev1alpha2.HealthScope {
	return scopeOf(corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health"})
}

// front returns the Service "front" with the finding of its probes.
func front(s probe.Finding) probe.Probed {
	return probe.Probed{Ref: probe.Ref{Cluster: hub, Name: "front"}, Port: "80", Finding: s}
}

func TestProbeResults(t *testing.T) {
	t.Parallel()
	// before returns a scope whose Services were probed before the controller started.
	before := func(culprits ...corev1alpha2.Culprit) *corev1alpha2.HealthScope {
		s := scopeWithProbes()
		s.Status.ObservedGeneration, s.Status.Culprits = s.Generation, culprits
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: corev1alpha2.ConditionProbesReady, Status: metav1.ConditionTrue, Reason: "Probing", ObservedGeneration: s.Generation})
		return s
	}
	failed := corev1alpha2.Culprit{Cluster: hub, Kind: "Service", Namespace: "shop", Name: "front", State: "Failed", Reason: "ProbeFailed", Cause: "GET /health on port 80: status code 503", Since: metaTime(seenAt)}
	pending, notProbed, timedOut := failed, failed, failed
	pending.State, pending.Reason, pending.Since = "Pending", "ProbePending", metaTime(noon.Add(-time.Minute))
	timedOut.State, timedOut.Reason, timedOut.Since = "Failed", "PendingTimeout", metaTime(noon.Add(-time.Minute))
	notProbed.State, notProbed.Reason, notProbed.Cause = "Unknown", "NotProbed", "no endpoint"
	away := world{states: map[string]fleet.Reachability{hub: fleet.Unreachable}}
	cases := map[string]struct {
		scope   *corev1alpha2.HealthScope
		w       world
		service probe.Probed
		want    string
	}{
		"passes":                              {service: front(probe.Finding{Result: probe.Passing, Made: true}), want: ""},
		"fails":                               {service: front(probe.Finding{Result: probe.Failing, Made: true, Cause: "timeout", LastSuccess: seenAt}), want: "Failed ProbeFailed GET /health on port 80: timeout; last success 2026-06-01T11:50:00Z"},
		"never passed":                        {service: front(probe.Finding{Result: probe.Failing, Made: true, Cause: "timeout"}), want: "Failed ProbeFailed GET /health on port 80: timeout"},
		"cannot be asked":                     {service: front(probe.Finding{Result: probe.Blocked, Made: true, Cause: "no endpoint"}), want: "Unknown NotProbed GET /health on port 80: no endpoint"},
		"has no port":                         {service: probe.Probed{Ref: probe.Ref{Cluster: hub, Name: "front"}, Problem: "it has no TCP port"}, want: "Unknown NotProbed it is not probed: it has no TCP port"},
		"is new":                              {service: front(probe.Finding{}), want: "Pending ProbePending it has not been probed yet"},
		"is new, and fails once":              {service: front(probe.Finding{Made: true, Cause: "timeout"}), want: "Pending ProbePending GET /health on port 80: timeout"},
		"was well before a restart":           {scope: before(), service: front(probe.Finding{}), want: ""},
		"failed before a restart":             {scope: before(failed), service: front(probe.Finding{}), want: "Failed ProbeFailed GET /health on port 80: status code 503"},
		"was pending before a restart":        {scope: before(pending), service: front(probe.Finding{}), want: "Pending ProbePending it has not been probed yet"},
		"was pending for long before it":      {scope: before(timedOut), service: front(probe.Finding{}), want: "Failed PendingTimeout"},
		"was not probed before a restart":     {scope: before(notProbed), service: front(probe.Finding{}), want: "Unknown NotProbed it has not been probed yet"},
		"fails again after a restart":         {scope: before(failed), service: front(probe.Finding{Made: true, Cause: "timeout"}), want: "Failed ProbeFailed GET /health on port 80: timeout"},
		"passes again after a restart":        {scope: before(failed), service: front(probe.Finding{Result: probe.Passing, Made: true}), want: ""},
		"is in a cluster that cannot be seen": {w: away, service: front(probe.Finding{Result: probe.Passing, Made: true}), want: "Unknown ClusterUnreachable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.scope == nil {
				c.scope = scopeWithProbes()
			}
			got := ""
			for _, culprit := range probedIn(c.w, c.scope, c.service).Culprits {
				if culprit.Kind == "Service" {
					got = strings.Join([]string{culprit.State, culprit.Reason, culprit.Cause}, " ")
				}
			}
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestProbedServiceCountsOnce: a probed Service that is also a member of the scope for another reason counts once, with the
// worse of its states. It is not a second reference.
func TestProbedServiceCountsOnce(t *testing.T) {
	t.Parallel()
	service := member(hub, "Service", "front", healthscope.Ready, "")
	service.Group = ""
	w := world{bundles: []*fleet.Bundle{labelledWith(bundleOf(hub, "1-front", service), map[string]string{corev1alpha2.LabelScopeName: "vfw"})}}
	for result, want := range map[probe.Result]corev1alpha2.Health{
		probe.Passing: corev1alpha2.Healthy, probe.Failing: corev1alpha2.Unhealthy, probe.Blocked: corev1alpha2.UnknownHealth,
	} {
		s := probedIn(w, scopeWithProbes(), front(probe.Finding{Result: result, Made: true, Cause: "timeout"}))
		if s.Health != want || s.Summary.Total != 1 || s.ScopeHealthCondition.Total != 1 {
			t.Errorf("%d: %s with %d members and %d references, want %s with one of each", result, s.Health, s.Summary.Total, s.ScopeHealthCondition.Total, want)
		}
	}
}

func TestTheMessageNamesServicesThatAreNotProbed(t *testing.T) {
	t.Parallel()
	service := member(hub, "Service", "back", healthscope.Ready, "")
	service.Group = ""
	w := world{bundles: []*fleet.Bundle{labelledWith(bundleOf(hub, "1-back", service), map[string]string{corev1alpha2.LabelScopeName: "vfw"})}}
	s := probedIn(w, scopeWithProbes(), front(probe.Finding{Result: probe.Passing, Made: true}))
	c := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionProbesReady)
	const want = "1 of 1 Services are probed; other Services of the scope, which ask for it neither by label nor by the annotation healthscope.core.oam.dev/probe: 1"
	if c == nil || c.Message != want {
		t.Errorf("%+v, want the message %q", c, want)
	}
}

// TestOAMsThresholds: the thresholds of OAM have the same effect as those of rollup. rollup takes precedence.
func TestOAMsThresholds(t *testing.T) {
	t.Parallel()
	of := func(component string, state healthscope.State) healthscope.Result {
		r := deployment(component, state, 1, 1)
		r.Labels = map[string]string{corev1alpha2.LabelComponent: component}
		return r
	}
	w := withDeployments(of("a", healthscope.Ready), of("b", healthscope.Ready), of("c", healthscope.Failed))
	for name, c := range map[string]struct {
		percent         *float64
		rollup          *corev1alpha2.Rollup
		required        []string
		want            corev1alpha2.Health
		missingRequired string
	}{
		"none":                        {want: corev1alpha2.Unhealthy},
		"two of three":                {percent: new(66.6), want: corev1alpha2.Healthy},
		"a little more than two":      {percent: new(66.7), want: corev1alpha2.Unhealthy},
		"rollup goes before":          {percent: new(100.0), rollup: &corev1alpha2.Rollup{HealthyPercentage: new(int32(50))}, want: corev1alpha2.Healthy},
		"out of range":                {percent: new(0.0), want: corev1alpha2.Unhealthy},
		"a required one is healthy":   {percent: new(50.0), required: []string{"a"}, want: corev1alpha2.Healthy},
		"a required one is not":       {percent: new(50.0), required: []string{"a", "c"}, want: corev1alpha2.Unhealthy},
		"a required one is not there": {percent: new(50.0), required: []string{"gone"}, want: corev1alpha2.Unhealthy, missingRequired: "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{
				WorkloadReferences: refs(deploymentRef("a"), deploymentRef("b"), deploymentRef("c")), HealthThresholdPercentage: c.percent, Rollup: c.rollup, RequiredHealthyComponents: c.required,
			}), noon.Add(time.Hour))
			ready := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady)
			if s.Health != c.want || !strings.Contains(ready.Message, c.missingRequired) {
				t.Errorf("%s, %q; want %s, %q", s.Health, ready.Message, c.want, c.missingRequired)
			}
			invalid := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionProbesReady)
			if (invalid != nil) != (name == "out of range") {
				t.Errorf("ProbesReady: %+v", invalid)
			}
		})
	}
}
