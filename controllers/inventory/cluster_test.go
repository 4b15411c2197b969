package inventory_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// object is an object as a monitor reads it from its cluster.
type object = *unstructured.Unstructured

func newObject(apiVersion, kind, namespace, name string, fields map[string]any) object {
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"app.kubernetes.io/name": name, "secret.example/note": "not allowed"})
	return o
}

// deployment returns a Deployment of one replica, which may be ready.
func deployment(namespace, name string, ready bool) object {
	replicas := int64(0)
	if ready {
		replicas = 1
	}
	return newObject("apps/v1", "Deployment", namespace, name, map[string]any{
		"spec":   map[string]any{"replicas": int64(1)},
		"status": map[string]any{"replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": replicas, "availableReplicas": replicas},
	})
}

// crashing returns a pod that crashes.
func crashing(namespace, name string) object {
	return newObject("v1", "Pod", namespace, name, map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}},
		"status": map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
			"name": "main", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
		}}},
	})
}

func service(namespace, name string) object {
	return newObject("v1", "Service", namespace, name, map[string]any{"spec": map[string]any{"type": "ClusterIP"}})
}

func configMap(namespace, name string) object {
	return newObject("v1", "ConfigMap", namespace, name, map[string]any{})
}

// report writes a bundle as a monitor with these objects would. It creates the bundle if it does not exist.
func report(ctx context.Context, namespace, name string, objects ...object) {
	GinkgoHelper()
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, b))).To(Succeed())
	rewrite(ctx, namespace, name, func(status *k8spluginv1alpha1.ResourceBundleStateStatus) {
		*status = bundle.Build(objects, status, time.Now(), bundle.Options{AllowedLabels: []string{"app.kubernetes.io/name"}})
	})
}

// rewrite changes the status of a bundle.
func rewrite(ctx context.Context, namespace, name string, change func(*k8spluginv1alpha1.ResourceBundleStateStatus)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var b k8spluginv1alpha1.ResourceBundleState
		if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &b); err != nil {
			return err
		}
		change(&b.Status)
		return api.Status().Update(ctx, &b)
	})).To(Succeed())
}

// spoil writes an invalid status into a bundle.
func spoil(ctx context.Context, namespace, name, status string) {
	GinkgoHelper()
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(api.Status().Patch(ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`)))).To(Succeed())
}

// newScope creates a scope.
func newScope(ctx context.Context, namespace, name string, apps ...corev1alpha2.ScopeApp) *corev1alpha2.HealthScope {
	GinkgoHelper()
	s := &corev1alpha2.HealthScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{}, Apps: apps},
	}
	Expect(api.Create(ctx, s)).To(Succeed())
	return s
}

// app returns an app of a scope with bundles.
func app(name string, bundles ...string) corev1alpha2.ScopeApp {
	a := corev1alpha2.ScopeApp{Name: name}
	for _, b := range bundles {
		a.WorkloadReferences = append(a.WorkloadReferences, ref(k8spluginv1alpha1.GroupVersion.String(), k8spluginv1alpha1.ResourceBundleStateKind, b))
	}
	return a
}

// linked returns the app with a link to a VNF and a module of it.
func linked(a corev1alpha2.ScopeApp, vnf, module string) corev1alpha2.ScopeApp {
	a.Inventory = &corev1alpha2.InventoryLinks{GenericVNFID: vnf, VFModuleID: module}
	return a
}

// newDeployment creates a Deployment. It is Pending, because there is no controller of Deployments. Its label app is its name.
func newDeployment(ctx context.Context, namespace, name string) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/main:1"}}}},
	}}
	Expect(api.Create(ctx, d)).To(Succeed())
	return d
}

func ref(apiVersion, kind, name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

// edit changes the spec of a scope.
func edit(ctx context.Context, s *corev1alpha2.HealthScope, change func(*corev1alpha2.HealthScope)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		change(s)
		return api.Update(ctx, s)
	})).To(Succeed())
}

// reading returns a function that reads a scope.
func reading(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) corev1alpha2.HealthScope {
	return func(g Gomega) corev1alpha2.HealthScope {
		var now corev1alpha2.HealthScope
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(s), &now)).To(Succeed())
		return now
	}
}

// version returns a function that returns the resource version of a scope.
func version(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) string {
	return func(g Gomega) string { return reading(ctx, s)(g).ResourceVersion }
}

// synced returns a function that returns the condition InventorySynced of a scope as "status reason".
func synced(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) string {
	return func(g Gomega) string {
		c := condition(reading(ctx, s)(g))
		return string(c.Status) + " " + c.Reason
	}
}

// condition returns the condition InventorySynced of a scope.
func condition(s corev1alpha2.HealthScope) metav1.Condition {
	c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionInventorySynced)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// message returns the current message of the condition InventorySynced.
func message(ctx context.Context, s *corev1alpha2.HealthScope) string {
	GinkgoHelper()
	return condition(reading(ctx, s)(NewWithT(GinkgoT()))).Message
}
