package scope_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// Existing HealthScopes of users, with every field of their CRDs.
const (
	firstDraft = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: first-draft}
spec:
  probe-method: GET
  probe-endpoint: /health
`
	oamRuntime = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: oam-runtime}
spec:
  probe-timeout: 5
  probe-interval: 60
  workloadRefs:
  - {apiVersion: apps/v1, kind: Deployment, name: web, uid: ""}
  - {apiVersion: core.oam.dev/v1alpha2, kind: ContainerizedWorkload, name: wordpress, uid: 7e2f6c58-1b7e-4c5e-9a53-1f1f3c1f4b0e}
`
	emptyRefs = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: empty-refs}
spec:
  workloadRefs: []
`
	kubeVela = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: kubevela}
spec:
  manageHealthCheck: true
  probe-timeout: 10
  probe-interval: 30
  appReferences:
  - appName: shop
    compReferences:
    - compName: front
      workload: {apiVersion: apps/v1, kind: Deployment, name: web, fieldPath: "", resourceVersion: "1234", uid: ""}
      traits:
      - {apiVersion: networking.k8s.io/v1, kind: Ingress, name: web, resourceVersion: "1", fieldPath: "spec.rules[0]", uid: x}
    - workload: {}
  workloadRefs: []
`
)

var healthScopes = schema.GroupVersionKind{Group: "core.oam.dev", Version: "v1alpha2", Kind: "HealthScope"}

// subset returns the parts of have that want also has.
func subset(want, have any) any {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return have
		}
		part := map[string]any{}
		for key := range w {
			if value, ok := h[key]; ok {
				part[key] = subset(w[key], value)
			}
		}
		return part
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return have
		}
		part := make([]any, 0, len(w))
		for i := range w {
			part = append(part, subset(w[i], h[i]))
		}
		return part
	default:
		return have
	}
}

var _ = Describe("HealthScopes that people have", func() {
	DescribeTable("apply unchanged, keep all their fields, and are judged",
		func(ctx SpecContext, text string, health corev1alpha2.Health, resourcesReady string, total int) {
			namespace := newNamespace(ctx)
			newDeployment(ctx, namespace, "web", 3)
			start()
			_, err := kubectl(ctx, "-n", namespace, "apply", "--validate=strict", "-f", suite.Manifest(text))
			Expect(err).NotTo(HaveOccurred())
			var want, got unstructured.Unstructured
			Expect(yaml.Unmarshal([]byte(text), &want.Object)).To(Succeed())
			got.SetGroupVersionKind(healthScopes)
			name := want.GetName()
			Expect(api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &got)).To(Succeed())
			Expect(yaml.Marshal(subset(want.Object, got.Object))).To(MatchYAML(text), "nothing is pruned")

			s := &corev1alpha2.HealthScope{}
			s.Namespace, s.Name = namespace, name
			Eventually(reading(ctx, s)).Should(haveHealth(health, resourcesReady))
			now := read(ctx, s)
			Expect(now.Status.ScopeHealthCondition.Total).To(BeEquivalentTo(total))
			Expect(now.Spec.WorkloadReferences).NotTo(BeNil(), "clients of OAM do not expect null")
		},
		Entry("in the first draft of OAM", firstDraft, unknown, "0/0", 0),
		Entry("of oam-kubernetes-runtime 0.4", oamRuntime, unknown, "1/2", 2),
		Entry("that are made before their workloads", emptyRefs, unknown, "0/0", 0),
		Entry("of KubeVela 1.8", kubeVela, unknown, "1/2", 2),
	)

	It("have a list of references even when they are applied without a spec", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for name, spec := range map[string]string{"without": "", "empty": "spec: {}", "other": "spec: {probe-timeout: 5}"} {
			_, err := kubectl(ctx, "-n", namespace, "apply", "-f", suite.Manifest("apiVersion: core.oam.dev/v1alpha2\nkind: HealthScope\nmetadata: {name: "+name+"}\n"+spec+"\n"))
			Expect(err).NotTo(HaveOccurred())
			var got unstructured.Unstructured
			got.SetGroupVersionKind(healthScopes)
			Expect(api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &got)).To(Succeed())
			Expect(got.Object["spec"]).To(HaveKeyWithValue("workloadRefs", []any{}), name)
		}
	})

	It("read as clients of OAM expect", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 2)
		start()
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web")))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/1"))
		raw := &unstructured.Unstructured{}
		raw.SetGroupVersionKind(healthScopes)
		Expect(api.Get(ctx, client.ObjectKeyFromObject(s), raw)).To(Succeed())
		status, err := yaml.Marshal(subset(map[string]any{"scopeHealthCondition": nil, "healthConditions": nil}, raw.Object["status"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(MatchYAML(fmt.Sprintf(`
scopeHealthCondition: {healthStatus: UNHEALTHY, total: 1, unhealthyWorkloads: 1}
healthConditions:
- componentName: web-component
  diagnosis: "Ready:2/3 Deployment/web: ReplicasNotReady"
  healthStatus: UNHEALTHY
  targetWorkload: {apiVersion: apps/v1, kind: Deployment, name: web, uid: %s}
`, web.UID)))
	})

	It("may lose and gain references at any time", func(ctx SpecContext) {
		// OAM's runtime did this to the scopes of an application.
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		newDeployment(ctx, namespace, "db", 1)
		start()
		s := newScope(ctx, namespace, "shop", corev1alpha2.HealthScopeSpec{})
		for _, step := range []struct {
			refs   corev1alpha2.HealthScopeSpec
			health corev1alpha2.Health
			ready  string
		}{
			{refs(ref("apps/v1", "Deployment", "web")), healthy, "1/1"},
			{refs(ref("apps/v1", "Deployment", "web"), ref("apps/v1", "Deployment", "db")), unhealthy, "1/2"},
			{refs(ref("apps/v1", "Deployment", "db")), unhealthy, "0/1"},
			{refs(), unknown, "0/0"},
		} {
			Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error { // The controller writes the status meanwhile.
				now := read(ctx, s)
				now.Spec = step.refs
				return api.Update(ctx, &now)
			})).To(Succeed())
			Eventually(reading(ctx, s)).Should(haveHealth(step.health, step.ready))
		}
	})
})

var _ = Describe("The CRD", func() {
	DescribeTable("refuses what cannot be, in words that help",
		func(ctx SpecContext, name, spec, want string) {
			text := fmt.Sprintf("apiVersion: core.oam.dev/v1alpha2\nkind: HealthScope\nmetadata: {name: %q}\nspec: %s\n", name, spec)
			_, err := kubectl(ctx, "-n", newNamespace(ctx), "apply", "-f", suite.Manifest(text))
			Expect(err).To(MatchError(ContainSubstring(want)))
		},
		Entry("the reserved name", "name", "{}", "the name 'name' is reserved"),
		Entry("a name that no label can hold", strings.Repeat("n", 64), "{}", "a HealthScope's name has at most 63 characters"),
		Entry("two apps of one name", "twice", "{apps: [{name: sink}, {name: sink}]}", `Duplicate value: {"name":"sink"}`),
		Entry("an app without a name", "nameless", "{apps: [{workloadRefs: []}]}", "spec.apps[0].name"),
		Entry("more than everybody", "many", "{rollup: {healthyPercentage: 101}}", "spec.rollup.healthyPercentage in body should be less than or equal to 100"),
		Entry("less than nobody", "few", "{rollup: {healthyPercentage: -1}}", "spec.rollup.healthyPercentage in body should be greater than or equal to 1"),
		Entry("nobody at all", "nobody", "{rollup: {healthyPercentage: 0}}", "spec.rollup.healthyPercentage in body should be greater than or equal to 1"),
		Entry("ignoring everything", "deaf", "{rollup: {ignore: [{}]}}", "one of group, kind, name and app is needed"),
		Entry("ignoring everything, in more words", "deafer", "{rollup: {ignore: [{kind: \"\"}]}}", "one of group, kind, name and app is needed"),
		Entry("no clusters at all", "homeless", "{clusters: {}}", "one of names and selector is needed"),
		Entry("no clusters for an app", "homeless", "{apps: [{name: sink, clusters: {names: []}}]}", "one of names and selector is needed"),
		Entry("a misspelt field", "typo", "{workloadReferences: []}", `unknown field "spec.workloadReferences"`),
		Entry("a field of another type", "typed", "{probe-timeout: ten}", "spec.probe-timeout"),
	)

	It("accepts a name of 63 characters", func(ctx SpecContext) {
		start()
		s := newScope(ctx, newNamespace(ctx), strings.Repeat("n", 63), corev1alpha2.HealthScopeSpec{})
		Eventually(reading(ctx, s)).Should(haveHealth(unknown, "0/0"))
	})

	It("explains itself", func(ctx SpecContext) {
		for path, words := range map[string][]string{
			"hs.spec.apps":              {"apps are the applications of the scope", "workloadRefs", "bundles with these labels belong to the app", "inventory"},
			"hs.spec.workloadRefs":      {"OAM's runtime adds and removes entries here", "cluster is the cluster the object is in", "apiVersion"},
			"hs.spec.rollup":            {"healthyPercentage is the share of members", "required are apps that must exist"},
			"healthscope.status":        {"health is the health of the scope", "scopeHealthCondition", "culprits are the members that count and are not healthy"},
			"hs.spec.probe-interval":    {"number of seconds between two probes of a Service"},
			"hs.status.culprits.reason": {"reason says why in one word"},
		} {
			text, err := kubectl(ctx, "explain", path)
			Expect(err).NotTo(HaveOccurred())
			Expect(text).NotTo(ContainSubstring("<empty>"), "%s: every field has a description", path)
			flat := strings.Join(strings.Fields(text), " ")
			for _, word := range words {
				Expect(flat).To(ContainSubstring(word))
			}
		}
	})
})
