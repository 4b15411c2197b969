package v1alpha2_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// decode reads a scope from YAML, and fails on any field that is not known.
func decode(t *testing.T, text string) corev1alpha2.HealthScope {
	t.Helper()
	var scope corev1alpha2.HealthScope
	if err := yaml.UnmarshalStrict([]byte(text), &scope); err != nil {
		t.Fatal(err)
	}
	return scope
}

func TestScopesOfOthersAreRead(t *testing.T) {
	ten, thirty := int32(10), int32(30)
	cases := map[string]struct {
		text string
		want corev1alpha2.HealthScopeSpec
	}{
		"OAM, as its runtime fills it": {
			`spec: {probe-timeout: 10, probe-interval: 30, workloadRefs: [{apiVersion: core.oam.dev/v1alpha2, kind: ContainerizedWorkload, name: web, uid: u-1}]}`,
			corev1alpha2.HealthScopeSpec{ProbeTimeout: &ten, ProbeInterval: &thirty, WorkloadReferences: []corev1alpha2.WorkloadReference{
				{APIVersion: "core.oam.dev/v1alpha2", Kind: "ContainerizedWorkload", Name: "web", UID: "u-1"},
			}},
		},
		"OAM, as it was first proposed": {
			`spec: {probe-method: GET, probe-endpoint: /health}`,
			corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health"},
		},
		"OAM, before anything refers to it": {`spec: {workloadRefs: []}`, corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{}}},
		"KubeVela, with components": {
			`spec:
  probe-timeout: 10
  probe-interval: 30
  appReferences:
  - appName: shop
    compReferences:
    - compName: web
      workload: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: store, resourceVersion: "4", fieldPath: spec}
      traits: [{apiVersion: networking.k8s.io/v1, kind: Ingress, name: web}]
  workloadRefs: []`,
			corev1alpha2.HealthScopeSpec{
				ProbeTimeout: &ten, ProbeInterval: &thirty, WorkloadReferences: []corev1alpha2.WorkloadReference{},
				AppReferences: []corev1alpha2.AppReference{{AppName: "shop", CompReferences: []corev1alpha2.CompReference{{
					CompName: "web",
					Workload: corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "store", ResourceVersion: "4", FieldPath: "spec"},
					Traits:   []corev1alpha2.WorkloadReference{{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "web"}},
				}}}},
			},
		},
		"KubeVela, with an empty reference": {`spec: {workloadRefs: [{}]}`, corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{{}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decode(t, tc.text).Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusIsWhatOAMClientsRead checks that names and upper-case values are those of OAM's runtime, which leaves out counts of zero.
func TestStatusIsWhatOAMClientsRead(t *testing.T) {
	status := corev1alpha2.HealthScopeStatus{
		Health:               corev1alpha2.Unhealthy,
		ScopeHealthCondition: corev1alpha2.ScopeHealthCondition{HealthStatus: corev1alpha2.StatusUnhealthy, Total: 2, HealthyWorkloads: 2},
		HealthConditions: []corev1alpha2.WorkloadHealthCondition{{
			ComponentName: "web", TargetWorkload: corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			HealthStatus: corev1alpha2.StatusHealthy, Diagnosis: "Ready:2/2 ",
		}},
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"health":               "unhealthy",
		"scopeHealthCondition": map[string]any{"healthStatus": "UNHEALTHY", "total": 2.0, "healthyWorkloads": 2.0},
		"healthConditions": []any{map[string]any{
			"componentName": "web", "targetWorkload": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "healthStatus": "HEALTHY", "diagnosis": "Ready:2/2 ",
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestASummaryWritesItsZeros checks that a summary has counts of zero, so that readers can distinguish zero from unknown.
func TestASummaryWritesItsZeros(t *testing.T) {
	encoded, err := json.Marshal(corev1alpha2.MemberCounts{State: "Ready"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"state":"Ready","total":0,"ready":0,"pending":0,"failed":0,"unknown":0}`; string(encoded) != want {
		t.Errorf("summary is %s, want %s", encoded, want)
	}
}
