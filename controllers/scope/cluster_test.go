package scope_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// newScope creates a scope.
func newScope(ctx context.Context, namespace, name string, spec corev1alpha2.HealthScopeSpec) *corev1alpha2.HealthScope {
	GinkgoHelper()
	s := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	Expect(api.Create(ctx, s)).To(Succeed())
	return s
}

// reading returns a function that reads a scope.
func reading(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) corev1alpha2.HealthScope {
	return func(g Gomega) corev1alpha2.HealthScope {
		var now corev1alpha2.HealthScope
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(s), &now)).To(Succeed())
		return now
	}
}

// read reads a scope.
func read(ctx context.Context, s *corev1alpha2.HealthScope) corev1alpha2.HealthScope {
	GinkgoHelper()
	return reading(ctx, s)(NewWithT(GinkgoT()))
}

// haveHealth matches a scope with that health and that resourcesReady, whose other fields agree with them.
func haveHealth(health corev1alpha2.Health, resourcesReady string) OmegaMatcher {
	ready := map[corev1alpha2.Health]metav1.ConditionStatus{
		corev1alpha2.Healthy: metav1.ConditionTrue, corev1alpha2.Unhealthy: metav1.ConditionFalse, corev1alpha2.UnknownHealth: metav1.ConditionUnknown,
	}
	oam := corev1alpha2.HealthStatus(strings.ToUpper(string(health)))
	return SatisfyAll(
		HaveField("Status.Health", health),
		HaveField("Status.ResourcesReady", resourcesReady),
		HaveField("Status.ScopeHealthCondition.HealthStatus", oam),
		WithTransform(func(s corev1alpha2.HealthScope) metav1.ConditionStatus {
			c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionReady)
			if c == nil || c.ObservedGeneration != s.Generation || s.Status.ObservedGeneration != s.Generation {
				return "of another generation"
			}
			return c.Status
		}, Equal(ready[health])),
	)
}

// culprits returns the culprits of a scope as "Kind/name state reason".
func culprits(s corev1alpha2.HealthScope) []string {
	var all []string
	for _, c := range s.Status.Culprits {
		all = append(all, fmt.Sprintf("%s/%s %s %s", c.Kind, c.Name, c.State, c.Reason))
	}
	return all
}

// eventsOf returns a function that returns the types and the reasons of the events of a scope.
func eventsOf(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) []string {
	return func(g Gomega) []string {
		var list eventsv1.EventList
		g.Expect(api.List(ctx, &list, client.InNamespace(s.Namespace))).To(Succeed())
		var reasons []string
		for _, e := range list.Items {
			if e.Regarding.UID == s.UID {
				count := 1
				if e.Series != nil {
					count = int(e.Series.Count)
				}
				for range count {
					reasons = append(reasons, e.Type+" "+e.Reason)
				}
			}
		}
		return reasons
	}
}

func bundleRef(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: name}
}

func ref(apiVersion, kind, name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

func refs(list ...corev1alpha2.WorkloadReference) corev1alpha2.HealthScopeSpec {
	return corev1alpha2.HealthScopeSpec{WorkloadReferences: list}
}

// newBundle creates a bundle without a status.
func newBundle(ctx context.Context, namespace, name string, labels map[string]string) *k8spluginv1alpha1.ResourceBundleState {
	GinkgoHelper()
	b := &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       k8spluginv1alpha1.ResourceBundleStateSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name}}},
	}
	Expect(api.Create(ctx, b)).To(Succeed())
	return b
}

// fill writes the status of a bundle as a monitor would.
func fill(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
	b.Status = bundle.Build(objects, &b.Status, time.Now(), bundle.Options{})
	Expect(api.Status().Update(ctx, b)).To(Succeed())
}

// fillRaw writes any JSON into the status of a bundle.
func fillRaw(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, status string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":%s}`, status)
	Expect(api.Status().Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// replicas are the numbers of a Deployment's replicas.
type replicas struct{ desired, total, ready int }

// inBundle returns a Deployment as its controller leaves it.
func inBundle(namespace, name string, r replicas) *unstructured.Unstructured {
	return decode(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":%q,"name":%q,"uid":"uid-%s","generation":1},"spec":{"replicas":%d},
		"status":{"observedGeneration":1,"replicas":%d,"readyReplicas":%d,"updatedReplicas":%d,"availableReplicas":%d}}`, namespace, name, name, r.desired, r.total, r.ready, r.total, r.ready))
}

// podInBundle returns a pod of a Deployment, in the form in which EMCO's API server leaves it: without owner.
func podInBundle(namespace, name string, ready bool) *unstructured.Unstructured {
	return decode(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":%q,"name":%q},"spec":{"containers":[{"name":"c"}]},
		"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q}],"containerStatuses":[{"name":"c","ready":%t,"state":{"running":{}}}]}}`,
		namespace, name, map[bool]string{true: "True", false: "False"}[ready], ready))
}

func decode(text string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	Expect(json.Unmarshal([]byte(text), &u.Object)).To(Succeed())
	return u
}

// template returns the selector and the pod template of a workload.
func template(name string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	set := map[string]string{"app": name}
	return &metav1.LabelSelector{MatchLabels: set}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: set},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// newDeployment creates a Deployment, with the given number of its 3 replicas ready.
func newDeployment(ctx context.Context, namespace, name string, ready int32) *appsv1.Deployment {
	GinkgoHelper()
	selector, pod := template(name)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.oam.dev/component": name + "-component"}},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector, Template: pod},
	}
	Expect(api.Create(ctx, d)).To(Succeed())
	report(ctx, d, ready)
	return d
}

// report writes the status of a Deployment with 3 replicas as its controller would.
func report(ctx context.Context, d *appsv1.Deployment, ready int32) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, ReadyReplicas: ready, UpdatedReplicas: 3, AvailableReplicas: ready}
	Expect(api.Status().Update(ctx, d)).To(Succeed())
}
