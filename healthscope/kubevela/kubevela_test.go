package kubevela_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/kubevela"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func TestReadApplication(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		status string
		want   kubevela.Application
	}{
		"AsKubeVelaWritesIt": {
			reason: "What policies apply is not of the application, and a Service runs nothing.",
			status: `
appliedResources:
- {apiVersion: core.oam.dev/v1alpha2, creator: policy, kind: HealthScope, name: store-health, namespace: demo}
- {apiVersion: apps/v1, creator: workflow, kind: Deployment, name: front, namespace: demo}
- {apiVersion: v1, creator: workflow, kind: Service, name: front, namespace: demo}
- {apiVersion: apps.kruise.io/v1alpha1, creator: workflow, kind: CloneSet, name: back, namespace: demo, cluster: local}
- {apiVersion: networking.k8s.io/v1, creator: workflow, kind: Ingress, name: back, namespace: demo, cluster: local}
`,
			want: kubevela.Application{Others: 2, Applied: []kubevela.Applied{
				{GroupVersionKind: deployments, Namespace: "demo", Name: "front"},
				{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, Namespace: "demo", Name: "back"},
			}},
		},
		"Environments": {
			reason: "An environment is a namespace of a cluster, or all of them.",
			status: `
policy:
- {name: health, type: health, status: {envs: 7}}
- name: where
  type: env-binding
  status:
    envs:
    - {env: prod, placements: [{cluster: edge}]}
    - {env: test, placements: [{cluster: edge, namespace: try}, {cluster: local}]}
- {name: other, type: topology, status: {envs: [{env: other, placements: [{cluster: edge}]}]}}
appliedResources:
- {apiVersion: apps/v1, creator: workflow, kind: Deployment, name: a, namespace: demo, cluster: edge}
- {apiVersion: apps/v1, creator: workflow, kind: Deployment, name: b, namespace: try, cluster: edge}
- {apiVersion: apps/v1, creator: workflow, kind: Deployment, name: c, namespace: demo}
- {apiVersion: apps/v1, creator: workflow, kind: Deployment, name: d, namespace: demo, cluster: other}
`,
			want: kubevela.Application{Applied: []kubevela.Applied{
				{GroupVersionKind: deployments, Cluster: "edge", Namespace: "demo", Name: "a", Env: "prod"},
				{GroupVersionKind: deployments, Cluster: "edge", Namespace: "try", Name: "b", Env: "test"},
				{GroupVersionKind: deployments, Namespace: "demo", Name: "c", Env: "test"},
				{GroupVersionKind: deployments, Cluster: "other", Namespace: "demo", Name: "d"},
			}},
		},
		"Nothing": {status: `{}`},
		"Nonsense": {
			status: `appliedResources: 7`,
			want:   kubevela.Application{Problem: "cannot read the status of the Application: "},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status map[string]any
			if err := yaml.Unmarshal([]byte(c.status), &status); err != nil {
				t.Fatal(err)
			}
			got := kubevela.ReadApplication(map[string]any{"status": status})
			if c.want.Problem != "" && len(got.Problem) > len(c.want.Problem) {
				got.Problem = got.Problem[:len(c.want.Problem)]
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestWhatIsReadOfAnApplicationIsBounded asserts that an Application cannot make the controller hold more objects than a scope
// may name.
func TestWhatIsReadOfAnApplicationIsBounded(t *testing.T) {
	t.Parallel()
	var applied []any
	for i := range kubevela.MaxApplied + 1 {
		applied = append(applied, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "creator": "workflow", "name": fmt.Sprint("web-", i)})
	}
	got := kubevela.ReadApplication(map[string]any{"status": map[string]any{"appliedResources": applied}})
	if len(got.Applied) != kubevela.MaxApplied || got.Problem == "" {
		t.Errorf("got %d objects and the problem %q, want %d and one that says so", len(got.Applied), got.Problem, kubevela.MaxApplied)
	}
}

func TestReadComponent(t *testing.T) {
	t.Parallel()
	labels := func(pairs ...string) map[string]string {
		set := map[string]string{"app.oam.dev/name": "store", "app.oam.dev/component": "front"}
		for i := 0; i < len(pairs); i += 2 {
			set[pairs[i]] = pairs[i+1]
		}
		return set
	}
	const trait, manages, gvk, named = "trait.oam.dev/type", "trait.oam.dev/manage-workload", "trait.oam.dev/workload-gvk", "trait.oam.dev/workload-name"
	cases := map[string]struct {
		labels, annotations map[string]string
		want                *kubevela.Component
	}{
		"Workload": {labels: labels("workload.oam.dev/type", "webservice"), want: &kubevela.Component{Name: "front", Workload: "webservice"}},
		"WorkloadThatManages": {
			labels: labels("workload.oam.dev/type", "webservice", manages, "true"), annotations: map[string]string{gvk: `{"apiVersion":"apps/v1","kind":"Deployment"}`},
			want: &kubevela.Component{Name: "front", Workload: "webservice"},
		},
		"Trait":     {labels: labels(trait, "gateway"), want: &kubevela.Component{Name: "front", Trait: "gateway"}},
		"Neither":   {labels: labels()},
		"NotOfVela": {},
		"ManagingTrait": {
			labels: labels(trait, "rollout", manages, "true"), annotations: map[string]string{gvk: `{"apiVersion":"apps/v1","kind":"Deployment"}`, named: "front-v2"},
			want: &kubevela.Component{Name: "front", Trait: "rollout", Manages: &kubevela.Managed{GroupVersionKind: deployments, Name: "front-v2"}},
		},
		"ManagingTraitOfTheComponentsName": {
			labels: labels(trait, "rollout", manages, "true"), annotations: map[string]string{gvk: `{"apiVersion":"apps/v1","kind":"Deployment"}`},
			want: &kubevela.Component{Name: "front", Trait: "rollout", Manages: &kubevela.Managed{GroupVersionKind: deployments, Name: "front"}},
		},
		"ManagingTraitThatCannotBeRead": {
			labels: labels(trait, "rollout", manages, "true"), annotations: map[string]string{gvk: `{"apiVersion":7,"kind":"Deployment"}`},
			want: &kubevela.Component{Name: "front", Trait: "rollout"},
		},
		"ManagingTraitThatDoesNotSayWhat": {
			labels: labels(trait, "rollout", manages, "true"), annotations: map[string]string{gvk: "{}"}, want: &kubevela.Component{Name: "front", Trait: "rollout"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := kubevela.ReadComponent(&metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// FuzzReadApplication asserts that any Application can be read without a panic, and that the number of objects is limited.
func FuzzReadApplication(f *testing.F) {
	f.Add(`{"appliedResources":[{"apiVersion":"apps/v1","kind":"Deployment","creator":"workflow","name":"web"}],"policy":[{"type":"env-binding","status":{"envs":[{"env":"e","placements":[{"cluster":"c"}]}]}}]}`)
	f.Add(`{"appliedResources":[null,7]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var status any
		if json.Unmarshal([]byte(text), &status) != nil {
			return
		}
		if got := kubevela.ReadApplication(map[string]any{"status": status}); len(got.Applied) > kubevela.MaxApplied {
			t.Errorf("%d objects", len(got.Applied))
		}
	})
}
