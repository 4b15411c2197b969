package oam

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestComponents reads the scopes of components, and their workloads, from ApplicationConfigurations of oam-kubernetes-runtime and
// of early drafts of OAM.
func TestComponents(t *testing.T) {
	t.Parallel()
	web := reference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-v2"}
	for name, c := range map[string]struct {
		application string
		want        []component
	}{
		"ByName": {`
spec: {components: [{componentName: web, scopes: [{scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}}]}]}
status: {workloads: [{componentName: other, workloadRef: {name: x}}, {componentName: web, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web-v2, uid: u}}]}`,
			[]component{{"web", []string{"shop"}, &web, nil}}},
		"ByRevision": {`
spec: {components: [{revisionName: web-r2, scopes: [{scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}}]}]}
status: {workloads: [{componentName: web, componentRevisionName: web-r2, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web-v2}}]}`,
			[]component{{"web", []string{"shop"}, &web, nil}}},
		"ByRevisionWithoutWorkload": {`
spec: {components: [{revisionName: web-r2, scopes: [{scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}}]}]}`,
			[]component{{"web-r2", []string{"shop"}, nil, nil}}},
		"InAnEarlyDraft": {`
spec: {components: [{componentName: web, scopes: [{apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}]}]}`,
			[]component{{"web", []string{"shop"}, nil, nil}}},
		"ScopesOfOtherKinds": {`
spec:
  components:
  - componentName: web
    scopes:
    - {scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: NetworkScope, name: net}}
    - {scopeRef: {apiVersion: example.org/v1, kind: HealthScope, name: others}}
    - {scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: ""}}`,
			nil},
		"TwiceInAScope": {`
spec:
  components:
  - componentName: web
    scopes: [{scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}}, {scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: shop}}]
status: {workloads: [{componentName: web}]}`,
			[]component{{"web", []string{"shop"}, nil, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newObject(ApplicationConfigurationKind)
			if err := yaml.Unmarshal([]byte(c.application), &u.Object); err != nil {
				t.Fatal(err)
			}
			got, err := components(u)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(component{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
