package rights

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// all and single are the bundles of an application: one holds an object of every default kind, the other a single pod.
const (
	all    = "1-all"
	single = "2-single"
)

// defaultKinds are the kinds in bundle all.
var defaultKinds = []string{
	"Pod", "Service", "ConfigMap", "PersistentVolumeClaim", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "Ingress",
}

// application is a namespace with the bundles and with three scopes: "direct" refers to workloads, "single" to bundle single,
// and "selecting" selects workloads.
type application string

// deploy creates the namespace of the application and all of its objects.
func deploy(ctx context.Context, namespace string) application {
	GinkgoHelper()
	a := application(namespace)
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	objects := append(a.workloads(), a.others()...)
	objects = append(objects, a.bundle(all), a.bundle(single), a.scope("single", workload(k8spluginv1alpha1.GroupVersion.String(), k8spluginv1alpha1.ResourceBundleStateKind, single)),
		a.scope("direct", workload("apps/v1", "Deployment", "web"), workload("apps/v1", "ReplicaSet", "web"), workload("apps/v1", "DaemonSet", "web"), workload("apps/v1", "StatefulSet", "web")), a.selecting())
	for _, o := range objects {
		Expect(k8s.Create(ctx, o)).To(Succeed())
	}
	return a
}

func (a application) meta(name, bundle string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: string(a), Name: name, Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle}}
}

func (a application) workloads() []client.Object {
	pods := func(of string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": of}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}},
		}
	}
	selector := func(of string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": of}}
	}
	job := pods("job")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	meta := a.meta("web", all)
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector("deployment"), Template: pods("deployment")}},
		&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector("replicaset"), Template: pods("replicaset")}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector("daemonset"), Template: pods("daemonset")}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector("statefulset"), Template: pods("statefulset")}},
		&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: job}},
		&corev1.Pod{ObjectMeta: meta, Spec: pods("").Spec},
		&corev1.Pod{ObjectMeta: a.meta("single", single), Spec: pods("").Spec},
	}
}

func (a application) others() []client.Object {
	meta := a.meta("web", all)
	backend := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return []client.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ConfigMap{ObjectMeta: meta},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
		&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{DefaultBackend: backend}},
	}
}

func (a application) bundle(name string) *k8spluginv1alpha1.ResourceBundleState {
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: a.meta(name, name)}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: b.Labels}
	return b
}

func (a application) scope(name string, refs ...corev1alpha2.WorkloadReference) *corev1alpha2.HealthScope {
	return &corev1alpha2.HealthScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: string(a), Name: name},
		Spec:       corev1alpha2.HealthScopeSpec{WorkloadReferences: refs},
	}
}

// selecting returns a scope with a selector that matches no workload. The controller watches the kinds of workloads for it all
// the same.
func (a application) selecting() *corev1alpha2.HealthScope {
	s := a.scope("selecting")
	s.Spec.Apps = []corev1alpha2.ScopeApp{{
		Name:             "web",
		WorkloadSelector: &corev1alpha2.WorkloadSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"part-of": "nothing"}}},
		Clusters:         &corev1alpha2.ClusterSelection{Names: []string{"local"}}, // In members, the hub has fewer rights.
	}}
	return s
}

func workload(apiVersion, kind, name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

// kinds returns the kinds of the resources in a bundle.
func (a application) kinds(ctx context.Context, name string) (map[string]bool, error) {
	b := a.bundle(name)
	err := k8s.Get(ctx, client.ObjectKeyFromObject(b), b)
	found := map[string]bool{}
	for _, r := range b.Status.Resources {
		found[r.Kind] = true
	}
	return found, err
}

// hasKinds waits until a bundle holds resources of kinds.
func (a application) hasKinds(ctx context.Context, name string, kinds ...string) {
	GinkgoHelper()
	for _, kind := range kinds {
		Eventually(ctx, a.kinds).WithArguments(name).Should(HaveKey(kind))
	}
}

// is waits until a scope has a health and a number of ready resources.
func (a application) is(ctx context.Context, name string, health corev1alpha2.Health, ready string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		scope := a.scope(name)
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(scope), scope)).To(Succeed())
		g.Expect(scope.Status.Health).To(Equal(health), "culprit: %s", scope.Status.FirstCulprit)
		g.Expect(scope.Status.ResourcesReady).To(Equal(ready))
	}).Should(Succeed())
}

// crash makes the single pod crash, or lets it recover.
func (a application) crash(ctx context.Context, crash bool) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: string(a), Name: "single"}}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{}
	if crash {
		pod.Annotations[controlplane.CrashAnnotation] = "true"
	}
	Expect(k8s.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// overwrite writes the status of a bundle like another monitor that does not know the summary in it.
func (a application) overwrite(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		b := a.bundle(name)
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		b.Status = k8spluginv1alpha1.ResourceBundleStateStatus{}
		return k8s.Status().Update(ctx, b, client.FieldOwner("another-monitor"))
	}).Should(Succeed())
}

// events returns the names of the bundles for which events exist.
func (a application) events(ctx context.Context) ([]string, error) {
	var list eventsv1.EventList
	err := k8s.List(ctx, &list, client.InNamespace(string(a)))
	var names []string
	for _, e := range list.Items {
		if e.Regarding.Kind == k8spluginv1alpha1.ResourceBundleStateKind {
			names = append(names, e.Regarding.Name)
		}
	}
	return names, err
}
