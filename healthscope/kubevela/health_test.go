package kubevela_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// scopeOf returns the scope "all". Its status has conditions of components of the Application "store", and of another one.
func scopeOf(truncated bool, components ...corev1alpha2.WorkloadHealthCondition) corev1alpha2.HealthScope {
	s := corev1alpha2.HealthScope{Status: corev1alpha2.HealthScopeStatus{AppHealthConditions: []corev1alpha2.AppHealthCondition{
		{AppName: "other", Components: []corev1alpha2.WorkloadHealthCondition{component("front", "", "UNHEALTHY", "of another Application")}},
		{AppName: "store", Components: components},
	}, Truncated: truncated}}
	s.Namespace, s.Name, s.UID = "demo", "all", "uid-1"
	return s
}

// named returns a scope with another name.
func named(name string, s corev1alpha2.HealthScope) corev1alpha2.HealthScope {
	s.Name = name
	return s
}

func component(name, cluster string, health corev1alpha2.HealthStatus, message string) corev1alpha2.WorkloadHealthCondition {
	return corev1alpha2.WorkloadHealthCondition{
		ComponentName: name, HealthStatus: health, CustomStatusMsg: message,
		TargetWorkload: corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: name, Cluster: cluster},
	}
}

func TestSetHealth(t *testing.T) {
	t.Parallel()
	const ref = "{apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, namespace: demo, name: all, uid: uid-1}"
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason         string
		status, wanted string
		scopes         []corev1alpha2.HealthScope
	}{
		"OfOthersNothingChanges": {
			reason: "Traits, clusters, orders, other conditions and scopes of other kinds are KubeVela's.",
			status: `
services:
- {name: back, healthy: true, message: old, traits: [{type: scaler, healthy: false}], scopes: [{kind: NetworkScope, name: all}, {apiVersion: acme.example/v1, kind: HealthScope, name: all}], workloadDefinition: {kind: Deployment}}
- {name: front, healthy: true, namespace: demo, env: prod}
conditions: [{type: Ready, status: "True"}]
observedGeneration: 3`,
			scopes: []corev1alpha2.HealthScope{scopeOf(false, component("front", "", "HEALTHY", "Ready:1/1"), component("back", "", "UNKNOWN", "gone"))},
			wanted: `
services:
- {name: back, healthy: false, message: gone, traits: [{type: scaler, healthy: false}], scopes: [{kind: NetworkScope, name: all}, {apiVersion: acme.example/v1, kind: HealthScope, name: all}, ` + ref + `], workloadDefinition: {kind: Deployment}}
- {name: front, healthy: true, message: "Ready:1/1", namespace: demo, env: prod, scopes: [` + ref + `]}
conditions: [{type: Ready, status: "True"}, {type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents, lastTransitionTime: "2026-11-23T12:00:00Z"}]
observedGeneration: 3`,
		},
		"OneOfTwoClusters": {
			reason: "Components of one name are told apart by where they are; one that is in no scope keeps its health.",
			status: `
services: [{name: front, cluster: edge, healthy: true}, {name: front, cluster: local, healthy: false}, {name: other, healthy: false}]`,
			scopes: []corev1alpha2.HealthScope{scopeOf(false, component("front", "", "HEALTHY", "Ready:1/1"), component("front", "edge", "UNHEALTHY", "Ready:0/1"))},
			wanted: `
services:
- {name: front, cluster: edge, healthy: false, message: "Ready:0/1", scopes: [` + ref + `]}
- {name: front, cluster: local, healthy: true, message: "Ready:1/1", scopes: [` + ref + `]}
- {name: other, healthy: false}
conditions: [{type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents, lastTransitionTime: "2026-11-23T12:00:00Z"}]`,
		},
		"TheSameAgain": {
			reason: "The time is that of the transition.",
			status: `
services: [{name: front, healthy: true, message: "Ready:1/1", scopes: [` + ref + `]}]
conditions: [{type: Healthy, status: "True", reason: AllComponentsHealthy, lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
			scopes: []corev1alpha2.HealthScope{scopeOf(false, component("front", "", "HEALTHY", "Ready:1/1"))},
			wanted: `
services: [{name: front, healthy: true, message: "Ready:1/1", scopes: [` + ref + `]}]
conditions: [{type: Healthy, status: "True", reason: AllComponentsHealthy, lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
		},
		"InNoScopeAnyMore": {
			status: `
services: [{name: front, healthy: false, scopes: [` + ref + `]}]
conditions: [{type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents}, {type: Ready, status: "True"}]`,
			wanted: `
services: [{name: front, healthy: false}]
conditions: [{type: Ready, status: "True"}]`,
		},
		"ScopeThatListsOnlyTheWorst": {
			reason: "What is not listed is as it was.",
			status: `
services: [{name: front, healthy: true, scopes: [` + ref + `]}, {name: back, healthy: true, scopes: [` + ref + `]}]`,
			scopes: []corev1alpha2.HealthScope{scopeOf(true, component("back", "", "UNHEALTHY", "Ready:0/1"))},
			wanted: `
services: [{name: front, healthy: true, scopes: [` + ref + `]}, {name: back, healthy: false, message: "Ready:0/1", scopes: [` + ref + `]}]
conditions: [{type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents, lastTransitionTime: "2026-11-23T12:00:00Z"}]`,
		},
		"InThreeScopes": {
			reason: "The scopes are in the order of their names, and the first that is not healthy counts.",
			status: `services: [{name: front, healthy: true}]`,
			scopes: []corev1alpha2.HealthScope{
				named("c", scopeOf(false, component("front", "", "UNHEALTHY", "late"))), named("a", scopeOf(false, component("front", "", "HEALTHY", "Ready:1/1"))),
				named("b", scopeOf(false, component("front", "", "UNHEALTHY", "early"))),
			},
			wanted: `
services: [{name: front, healthy: false, message: early, scopes: [` + strings.Replace(ref, "all", "a", 1) + ", " + strings.Replace(ref, "all", "b", 1) + ", " + strings.Replace(ref, "all", "c", 1) + `]}]
conditions: [{type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents, lastTransitionTime: "2026-11-23T12:00:00Z"}]`,
		},
		"ConditionOfAnotherInAScope": {
			reason: "The status is the same, and so is its time.",
			status: `conditions: [{type: Healthy, status: "False", reason: Other, lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
			scopes: []corev1alpha2.HealthScope{scopeOf(false, component("front", "", "UNHEALTHY", "gone"))},
			wanted: `conditions: [{type: Healthy, status: "False", reason: UnhealthyOrUnknownComponents, lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
		},
		"ConditionOfAnother": {
			status: `conditions: [{type: Healthy, status: "False", reason: Other}]`,
			wanted: `conditions: [{type: Healthy, status: "False", reason: Other}]`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := application(t, c.status), application(t, c.wanted)
			if err := kubevela.SetHealth(got, kubevela.JudgementOf("store", c.scopes), now); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// application returns an Application with a status.
func application(t *testing.T, status string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(status), &content); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"status": content}
}

// TestAwaitsHealth asserts that no health is awaited while a workflow runs, because KubeVela itself judges the Application until
// the workflow ends.
func TestAwaitsHealth(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"{}":                         false,
		"workflow: {finished: true}": false,
		"{status: running, workflow: {finished: true}}":                        true,
		"{status: unhealthy, workflow: {finished: true}}":                      true,
		"{status: workflowSuspending, workflow: {suspend: true}}":              true,
		"{status: runningWorkflow, workflow: {finished: false}}":               false,
		"{status: rendering, workflow: {finished: true, appRevision: old-v1}}": false,
		"{status: deleting, workflow: {finished: true}}":                       false,
		"{status: running, workflow: 7}":                                       false,
	} {
		if got := kubevela.AwaitsHealth(application(t, status)); got != want {
			t.Errorf("%s: got %t, want %t", status, got, want)
		}
	}
}
