package oam_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/e2e/suite"
)

// shop is a namespace with the objects of a user of OAM.
type shop struct{ namespace string }

func newShop(ctx context.Context) shop {
	GinkgoHelper()
	application := &unstructured.Unstructured{}
	application.SetGroupVersionKind(oam.ApplicationConfigurationKind)
	return shop{suite.NewNamespace(ctx, api, &corev1alpha2.HealthScope{}, application)}
}

func (s shop) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s shop) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(api.Create(ctx, o)).To(Succeed())
	}
}

func (s shop) deployment(name string) *appsv1.Deployment {
	set := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: s.meta(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: set},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
}

func (s shop) service(name string) *corev1.Service {
	meta := s.meta(name)
	meta.Labels = map[string]string{"team": "shop"}
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// scope returns a scope that has fields of other writers too.
func (s shop) scope(name string, refs ...corev1alpha2.WorkloadReference) *corev1alpha2.HealthScope {
	meta := s.meta(name)
	meta.Annotations, meta.Labels = map[string]string{"owner": "jane"}, map[string]string{"team": "shop"}
	return &corev1alpha2.HealthScope{ObjectMeta: meta, Spec: corev1alpha2.HealthScopeSpec{
		WorkloadReferences: refs, Rollup: &corev1alpha2.Rollup{HealthyPercentage: new(int32(50))},
	}}
}

// application returns an ApplicationConfiguration of components, each with the scopes that it is in.
func (s shop) application(name string, scopesOf map[string][]string) *unstructured.Unstructured {
	components := []any{}
	for _, component := range slices.Sorted(maps.Keys(scopesOf)) {
		var scopes []any
		for _, scope := range scopesOf[component] {
			scopes = append(scopes, map[string]any{"scopeRef": map[string]any{"apiVersion": "core.oam.dev/v1alpha2", "kind": "HealthScope", "name": scope}})
		}
		components = append(components, map[string]any{"componentName": component, "scopes": scopes, "traits": []any{map[string]any{"trait": map[string]any{"kind": "Any"}}}})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"components": components}}}
	u.SetGroupVersionKind(oam.ApplicationConfigurationKind)
	u.SetNamespace(s.namespace)
	u.SetName(name)
	return u
}

func deployment(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

// refs returns the names in the references of a scope, in their order.
func (s shop) refs(ctx context.Context, scope string) string {
	GinkgoHelper()
	found := &corev1alpha2.HealthScope{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: scope}, found)).To(Succeed())
	var names []string
	for _, r := range found.Spec.WorkloadReferences {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

// scopesOf returns the scopes whose label a Service has.
func (s shop) scopesOf(ctx context.Context, service string) string {
	GinkgoHelper()
	found := &corev1.Service{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: service}, found)).To(Succeed())
	Expect(found.Labels).To(HaveKeyWithValue("team", "shop"))
	var scopes []string
	for key, value := range found.Labels {
		if scope, ok := strings.CutPrefix(key, corev1alpha2.LabelScopePrefix); ok && value == "true" {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return strings.Join(scopes, " ")
}

// condition returns the conditions of an ApplicationConfiguration as text.
func (s shop) condition(ctx context.Context, name string) string {
	GinkgoHelper()
	u := s.application(name, nil)
	Expect(api.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		Expect(ok).To(BeTrue())
		text := fmt.Sprintf("%s %s %s", c["type"], c["status"], c["reason"])
		if message, ok := c["message"]; ok {
			text += fmt.Sprintf(": %s", message)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

var _ = Describe("The controller of ApplicationConfigurations", func() {
	It("adds workloads to the scopes of their components, and takes them out", func(ctx SpecContext) {
		s := newShop(ctx)
		run(oam.Options{LabelServices: true})
		s.create(ctx, s.deployment("web"), s.deployment("by-hand"), s.service("web"), s.service("cart-service"), s.service("other"))
		first := s.application("first", map[string][]string{"web": {"shared"}, "cart": {"shared"}})
		s.create(ctx, first)

		By("saying that the scope is missing")
		Eventually(s.condition).WithContext(ctx).WithArguments("first").Should(Equal("HealthScopesJoined False ScopeNotFound: HealthScopes that do not exist: shared; components without a workload, by status.workloads, labels or name: cart"))
		Eventually(func(g Gomega) {
			var list eventsv1.EventList
			g.Expect(api.List(ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(HaveField("Reason", "ScopeNotFound")))
		}).Should(Succeed())
		s.create(ctx, s.scope("shared", deployment("by-hand")))
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(Equal("by-hand web"))
		Eventually(s.condition).WithContext(ctx).WithArguments("first").Should(Equal("HealthScopesJoined False WorkloadNotFound: components without a workload, by status.workloads, labels or name: cart"))
		Eventually(s.scopesOf).WithContext(ctx).WithArguments("web").Should(Equal("shared"))

		By("finding a workload by its labels, with the Service that it names")
		cart := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"resources": []any{map[string]any{"apiVersion": "v1", "kind": "Service", "name": "cart-service"}}}}}
		cart.SetGroupVersionKind(schema.GroupVersionKind{Group: "core.oam.dev", Version: "v1alpha2", Kind: "ContainerizedWorkload"})
		cart.SetNamespace(s.namespace)
		cart.SetName("cart-v1")
		cart.SetLabels(map[string]string{"app.oam.dev/name": "first", "app.oam.dev/component": "cart"})
		s.create(ctx, cart)
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(Equal("by-hand web cart-v1"))
		Eventually(s.scopesOf).WithContext(ctx).WithArguments("cart-service").Should(Equal("shared"))
		Eventually(s.condition).WithContext(ctx).WithArguments("first").Should(Equal("HealthScopesJoined True Joined"))

		By("sharing the scope and a workload with another")
		second := s.application("second", map[string][]string{"web": {"shared"}})
		s.create(ctx, second)
		Eventually(s.condition).WithContext(ctx).WithArguments("second").Should(Equal("HealthScopesJoined True Joined"))
		Expect(api.Delete(ctx, first)).To(Succeed())
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(Equal("by-hand web"))
		Eventually(s.scopesOf).WithContext(ctx).WithArguments("cart-service").Should(BeEmpty())
		Expect(s.scopesOf(ctx, "web")).To(Equal("shared"))

		By("applying the scope without references")
		scope := s.scope("shared")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(scope), scope)).To(Succeed())
		scope.Spec.WorkloadReferences = []corev1alpha2.WorkloadReference{}
		Expect(api.Update(ctx, scope)).To(Succeed())
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(Equal("web"))

		By("following what a runtime says of the workload")
		s.create(ctx, s.deployment("web-v2"))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
		workloads := []any{map[string]any{"componentName": "web", "workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}}}
		Expect(unstructured.SetNestedSlice(second.Object, workloads, "status", "workloads")).To(Succeed())
		Expect(api.Status().Update(ctx, second)).To(Succeed())
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(Equal("web-v2"))

		By("removing the scope from the component")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
		second.Object["spec"] = s.application("second", map[string][]string{"web": nil}).Object["spec"]
		Expect(api.Update(ctx, second)).To(Succeed())
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(BeEmpty())
		Eventually(s.scopesOf).WithContext(ctx).WithArguments("web").Should(BeEmpty())
		Eventually(s.condition).WithContext(ctx).WithArguments("second").Should(BeEmpty())
		Expect(s.scopesOf(ctx, "other")).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("says that there is no CRD, or no right", func(ctx SpecContext) {
		Expect(oam.CheckReadable(ctx, api, oam.ApplicationConfigurationKind)).To(Succeed())
		Expect(oam.CheckReadable(ctx, api, schema.GroupVersionKind{Group: "core.oam.dev", Version: "v1alpha9", Kind: "ApplicationConfiguration"})).To(
			MatchError("cannot list ApplicationConfigurations: the cluster has no CRD for them with version v1alpha9; see config/docs/oam.md"))
		config := rest.CopyConfig(plane.Config())
		config.Impersonate.UserName = "jane"
		jane, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(oam.CheckReadable(ctx, jane, oam.ApplicationConfigurationKind)).To(MatchError(And(
			HavePrefix("cannot list ApplicationConfigurations, for want of a right in config/docs/rights.md: "), ContainSubstring(`User "jane" cannot list`))))
	})

	It("takes out the workloads of what was deleted while it did not run", func(ctx SpecContext) {
		s := newShop(ctx)
		s.create(ctx, s.deployment("web"), s.scope("shared"))
		scope := s.scope("shared")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(scope), scope)).To(Succeed())
		scope.Spec.WorkloadReferences = []corev1alpha2.WorkloadReference{deployment("web")}
		scope.Annotations[oam.AnnotationReferences] = `{"gone":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}]}`
		Expect(api.Update(ctx, scope)).To(Succeed())
		run(oam.Options{})
		Eventually(s.refs).WithContext(ctx).WithArguments("shared").Should(BeEmpty())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(scope), scope)).To(Succeed())
		Expect(scope.Annotations).To(Equal(map[string]string{"owner": "jane"}))
	})

	It("keeps scopes and Services right whatever is added, changed and deleted, and writes nothing at rest", func(ctx SpecContext) {
		const applications, workloads, scopes = 50, 12, 6
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		s := newShop(ctx)
		w := run(oam.Options{LabelServices: true})
		for i := range workloads {
			s.create(ctx, s.deployment(fmt.Sprintf("w%d", i)), s.service(fmt.Sprintf("w%d", i)))
		}
		for i := range scopes {
			s.create(ctx, s.scope(fmt.Sprintf("s%d", i), deployment("by-hand"), deployment("w0"))) // The reference to w0 is set by hand, too.
		}
		live := map[string]map[string][]string{}
		applied := map[string]string{} // The ApplicationConfigurations as they were written last.
		before := s.othersOf(ctx, workloads, scopes)
		draw := func() map[string][]string {
			scopesOf := map[string][]string{}
			for range random.IntN(4) {
				component := fmt.Sprintf("w%d", random.IntN(workloads))
				for range random.IntN(3) {
					scopesOf[component] = append(scopesOf[component], fmt.Sprintf("s%d", random.IntN(scopes+1))) // The last one does not exist.
				}
			}
			return scopesOf
		}
		write := func(name string) {
			u := s.application(name, draw())
			u.SetAnnotations(map[string]string{"owner": "jane"})
			var want map[string]any
			Expect(convert(u.Object["spec"], &want)).To(Succeed())
			if _, exists := live[name]; exists {
				Expect(api.Patch(ctx, u, client.Merge)).To(Succeed())
			} else {
				Expect(api.Create(ctx, u)).To(Succeed())
				// A runtime writes a status like this.
				status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"dependency": {"unsatisfied": [1]}, "conditions": [{"type": "Synced", "status": "True", "reason": "ReconcileSuccess"}]}}`))
				Expect(api.Status().Patch(ctx, u, status)).To(Succeed())
			}
			Expect(u.Object["spec"]).To(Equal(want))
			live[name], applied[name] = declared(u), withoutOurs(u)
		}
		step := func() {
			name := fmt.Sprintf("a%d", random.IntN(applications))
			if _, exists := live[name]; exists && random.IntN(3) == 0 {
				Expect(api.Delete(ctx, s.application(name, nil))).To(Succeed())
				delete(live, name)
				delete(applied, name)
				return
			}
			write(name)
		}
		for _, i := range random.Perm(applications) {
			write(fmt.Sprintf("a%d", i))
		}
		for rest := range 5 {
			for range 30 {
				step()
			}
			want, labels := expected(live, scopes)
			Eventually(func(g Gomega) {
				for i := range scopes {
					name := fmt.Sprintf("s%d", i)
					got := strings.Fields(s.refs(ctx, name))
					g.Expect(got[:2]).To(Equal([]string{"by-hand", "w0"}), "what others have written keeps its place")
					g.Expect(got[2:]).To(ConsistOf(want[name]), "references of %s", name)
				}
				for i := range workloads {
					name := fmt.Sprintf("w%d", i)
					g.Expect(s.scopesOf(ctx, name)).To(Equal(strings.Join(labels[name], " ")), "scopes of Service %s", name)
				}
				for name, scopesOf := range live {
					g.Expect(s.condition(ctx, name)).To(Equal("Synced True ReconcileSuccess"+joined(scopesOf, scopes)), "condition of ApplicationConfiguration %s", name)
				}
			}).Should(Succeed(), "rest %d", rest)
			var writes int
			Eventually(func() bool { // The last conditions may still be written.
				now := w.count()
				still := now == writes
				writes = now
				return still
			}).WithPolling(300 * time.Millisecond).Should(BeTrue())
			Consistently(w.count).Should(Equal(writes), "nothing is written at rest")
			Expect(s.othersOf(ctx, workloads, scopes)).To(Equal(before), "what is not ours stays, to the byte")
			for name, want := range applied {
				Expect(withoutOurs(s.get(ctx, oam.ApplicationConfigurationKind, name))).To(Equal(want))
			}
		}
		for name := range live {
			Expect(api.Delete(ctx, s.application(name, nil))).To(Succeed())
		}
		for i := range scopes {
			Eventually(s.refs).WithContext(ctx).WithArguments(fmt.Sprintf("s%d", i)).Should(Equal("by-hand w0"))
		}
		for i := range workloads {
			Eventually(s.scopesOf).WithContext(ctx).WithArguments(fmt.Sprintf("w%d", i)).Should(BeEmpty())
		}
	}, SpecTimeout(3*time.Minute))
})

// get returns an object as the API server has it.
func (s shop) get(ctx context.Context, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	Expect(api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, u)).To(Succeed())
	return u
}

// othersOf returns all scopes, workloads and Services of the shop as JSON, without the fields of the controller.
func (s shop) othersOf(ctx context.Context, workloads, scopes int) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for i := range workloads {
		name := fmt.Sprintf("w%d", i)
		all["Service/"+name] = withoutOurs(s.get(ctx, corev1.SchemeGroupVersion.WithKind("Service"), name))
		workload, err := json.Marshal(s.get(ctx, appsv1.SchemeGroupVersion.WithKind("Deployment"), name))
		Expect(err).NotTo(HaveOccurred())
		all["Deployment/"+name] = string(workload) // It includes the resourceVersion, because the controller only reads workloads.
	}
	for i := range scopes {
		name := fmt.Sprintf("s%d", i)
		all["HealthScope/"+name] = withoutOurs(s.get(ctx, corev1alpha2.GroupVersion.WithKind(corev1alpha2.HealthScopeKind), name))
	}
	return all
}

// withoutOurs returns an object as JSON without the fields that the controller may write: the references that it adds to the two by
// hand, its annotation of scopes, its labels of Services, its condition, and the fields that the API server changes with each
// write.
func withoutOurs(u *unstructured.Unstructured) string {
	GinkgoHelper()
	u = u.DeepCopy()
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	annotations, labels := u.GetAnnotations(), u.GetLabels()
	delete(annotations, oam.AnnotationReferences)
	u.SetAnnotations(annotations)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, corev1alpha2.LabelScopePrefix) })
	u.SetLabels(labels)
	if refs, exist, err := unstructured.NestedSlice(u.Object, "spec", "workloadRefs"); exist && u.GetKind() == corev1alpha2.HealthScopeKind {
		Expect(err).NotTo(HaveOccurred())
		u.SetGeneration(0)
		Expect(unstructured.SetNestedSlice(u.Object, refs[:2], "spec", "workloadRefs")).To(Succeed())
	}
	if conditions, exist, err := unstructured.NestedSlice(u.Object, "status", "conditions"); exist {
		Expect(err).NotTo(HaveOccurred())
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == oam.ConditionJoined
		})
		Expect(unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")).To(Succeed())
	}
	data, err := json.Marshal(u)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// declared returns the scopes of each component of an ApplicationConfiguration.
func declared(u *unstructured.Unstructured) map[string][]string {
	GinkgoHelper()
	var spec struct {
		Components []struct {
			ComponentName string
			Scopes        []struct{ ScopeRef struct{ Name string } }
		}
	}
	Expect(convert(u.Object["spec"], &spec)).To(Succeed())
	scopesOf := map[string][]string{}
	for _, c := range spec.Components {
		for _, scope := range c.Scopes {
			scopesOf[c.ComponentName] = append(scopesOf[c.ComponentName], scope.ScopeRef.Name)
		}
	}
	return scopesOf
}

// convert converts a value to another type through JSON.
func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// joined returns the condition that an ApplicationConfiguration must have besides that of its runtime.
func joined(scopesOf map[string][]string, scopes int) string {
	missing := fmt.Sprintf("s%d", scopes)
	switch {
	case len(scopesOf) == 0:
		return ""
	case slices.Contains(slices.Concat(slices.Collect(maps.Values(scopesOf))...), missing):
		return "; HealthScopesJoined False ScopeNotFound: HealthScopes that do not exist: " + missing
	}
	return "; HealthScopesJoined True Joined"
}

// expected returns the references that each scope must have besides those by hand, and the scopes whose label each Service must have.
func expected(live map[string]map[string][]string, scopes int) (refs, labels map[string][]string) {
	refs, labels = map[string][]string{}, map[string][]string{}
	for _, scopesOf := range live {
		for component, names := range scopesOf {
			for _, scope := range names {
				if scope == fmt.Sprintf("s%d", scopes) {
					continue
				}
				if component != "w0" && !slices.Contains(refs[scope], component) {
					refs[scope] = append(refs[scope], component)
				}
				if !slices.Contains(labels[component], scope) {
					labels[component] = append(labels[component], scope)
				}
			}
		}
	}
	for _, names := range labels {
		slices.Sort(names)
	}
	return refs, labels
}
