package monitor_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// meta returns the metadata of an object of a bundle.
func meta(namespace, name, bundle string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle}}
}

// newBundle returns a bundle as rsync creates it.
func newBundle(namespace, name string) *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: meta(namespace, name, name),
		Spec: k8spluginv1alpha1.ResourceBundleStateSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name},
		}},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sink:1", Env: []corev1.EnvVar{{Name: "MODE", Value: "canary-env"}}}}}
}

func template(bundle string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": bundle, k8spluginv1alpha1.LabelDeploymentID: bundle}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": bundle}},
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}
}

func newPod(namespace, name, bundle string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta(namespace, name, bundle), Spec: podSpec()}
}

func newService(namespace, name, bundle string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, name, bundle), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func newConfigMap(namespace, name, bundle string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(namespace, name, bundle), Data: map[string]string{"key": "canary-data"}}
}

func newSecret(namespace, name, bundle string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(namespace, name, bundle), StringData: map[string]string{"password": "canary-secret"}}
}

func newDeployment(namespace, name, bundle string) *appsv1.Deployment {
	selector, pods := template(bundle)
	return &appsv1.Deployment{ObjectMeta: meta(namespace, name, bundle), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}
}

// oneOfEach returns an object of each default kind.
func oneOfEach(namespace, bundle string) []client.Object {
	selector, pods := template(bundle)
	jobPods := *pods.DeepCopy()
	jobPods.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []client.Object{
		newPod(namespace, "pod", bundle),
		newService(namespace, "service", bundle),
		newConfigMap(namespace, "configmap", bundle),
		newDeployment(namespace, "deployment", bundle),
		&appsv1.ReplicaSet{ObjectMeta: meta(namespace, "replicaset", bundle), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: pods}},
		&appsv1.DaemonSet{ObjectMeta: meta(namespace, "daemonset", bundle), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pods}},
		&appsv1.StatefulSet{ObjectMeta: meta(namespace, "statefulset", bundle), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods}},
		&batchv1.Job{ObjectMeta: meta(namespace, "job", bundle), Spec: batchv1.JobSpec{Template: jobPods}},
		&networkingv1.Ingress{ObjectMeta: meta(namespace, "ingress", bundle), Spec: networkingv1.IngressSpec{
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "service", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta(namespace, "pvc", bundle), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(api.Create(ctx, object)).To(Succeed())
	}
}

// remove deletes objects at once: there is no kubelet to wait for.
func remove(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(api.Delete(ctx, object, client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// setReady writes the status of a pod as a kubelet would.
func setReady(ctx context.Context, pod *corev1.Pod, ready bool) {
	GinkgoHelper()
	before := pod.DeepCopy()
	status := corev1.ConditionFalse
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	if ready {
		status = corev1.ConditionTrue
		state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	}
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}},
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: ready, State: state, RestartCount: 3,
		})
	}
	Expect(api.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// get reads a bundle.
func get(ctx context.Context, namespace, name string) *k8spluginv1alpha1.ResourceBundleState {
	GinkgoHelper()
	b := &k8spluginv1alpha1.ResourceBundleState{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b)).To(Succeed())
	return b
}

// raw reads a bundle as the API server sends it.
func raw(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind))
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b)).To(Succeed())
	text, err := json.Marshal(b)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// states returns the states of the resources in a bundle, as "Kind/name": "State".
func states(b *k8spluginv1alpha1.ResourceBundleState) map[string]string {
	listed := map[string]string{}
	for _, r := range b.Status.Resources {
		listed[r.Kind+"/"+r.Name] = r.State
	}
	return listed
}

// statesOf polls the states of a bundle.
func statesOf(ctx context.Context, namespace, name string) func() map[string]string {
	return func() map[string]string { return states(get(ctx, namespace, name)) }
}

// sinceOf returns the time since which a resource of a bundle has been in its state.
func sinceOf(b *k8spluginv1alpha1.ResourceBundleState, kind, name string) time.Time {
	GinkgoHelper()
	for _, r := range b.Status.Resources {
		if r.Kind == kind && r.Name == name {
			Expect(r.Since).NotTo(BeNil())
			return r.Since.Time
		}
	}
	Fail("no " + kind + "/" + name + " in bundle " + b.Name)
	return time.Time{}
}

// update changes an object, and retries on conflict.
func update[T client.Object](ctx context.Context, object T, change func(T)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return api.Update(ctx, object)
	})).To(Succeed())
}
