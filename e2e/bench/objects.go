package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// started is the start time in all objects.
var started = time.Now().Truncate(time.Second)

// app is an application: pods, ConfigMaps, a Deployment and a Service that share a label, and their bundle.
type app struct {
	namespace, name  string
	pods, configMaps int
	// bare is true when the pods have no controller, so that each of them counts in the summary of the bundle.
	bare bool
}

// key returns the name of the application's bundle.
func (a app) key() types.NamespacedName {
	return types.NamespacedName{Namespace: a.namespace, Name: a.name}
}

// resources returns the number of objects in the bundle.
func (a app) resources() int { return a.pods + a.configMaps + 2 }

// settings returns the Service and the ConfigMaps.
func (a app) settings() []client.Object {
	objects := []client.Object{a.service()}
	for i := range a.configMaps {
		objects = append(objects, a.configMap(i))
	}
	return objects
}

// counting returns the number of objects that count in the summary of the bundle: those that no other object of the bundle owns.
func (a app) counting() int {
	if a.bare {
		return a.resources()
	}
	return a.resources() - a.pods
}

func (a app) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: map[string]string{
		k8spluginv1alpha1.LabelDeploymentID: a.name,
		"app":                               a.name, "app.kubernetes.io/name": a.name, "app.kubernetes.io/component": "server",
	}}
}

func (a app) selector() map[string]string { return map[string]string{"app": a.name} }

func (a app) bundle() *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: a.meta(a.name), Spec: k8spluginv1alpha1.ResourceBundleStateSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: a.name}},
	}}
}

// podName returns a pod name in the form that the controllers of a Deployment use.
func (a app) podName(i int) string { return fmt.Sprintf("%s-6d4cf56db6-%05d", a.name, i) }

// pod returns a typical pod of about 5 KB: two containers with environment, probes and mounts.
func (a app) pod(i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: a.meta(a.podName(i)), Spec: a.podSpec()}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i%7)
	if !a.bare {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.name + "-6d4cf56db6", UID: types.UID("0d0f6a6e-" + a.name), Controller: new(true),
		}}
	}
	return pod
}

func (a app) podSpec() corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: "default",
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: a.configMapName(0)}}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}},
	}
	for _, name := range []string{"server", "proxy"} {
		spec.Containers = append(spec.Containers, container(name))
	}
	return spec
}

func container(name string) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}},
			InitialDelaySeconds: 5, PeriodSeconds: 10, TimeoutSeconds: 2, FailureThreshold: 3,
		}
	}
	c := corev1.Container{
		Name: name, Image: "registry.example.org/telco/" + name + ":1.4.2", Args: []string{"--config=/etc/" + name + "/config.yaml", "--verbose"},
		Ports:         []corev1.ContainerPort{{Name: "http-" + name, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + name, ReadOnly: true}, {Name: "scratch", MountPath: "/var/lib/" + name}},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("%s_SETTING_%d", strings.ToUpper(name), i), Value: strings.Repeat("v", 40)})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}})
	return c
}

// podStatus returns the status of a pod that is ready, or whose first container crashes.
func podStatus(pod *corev1.Pod, crash bool) corev1.PodStatus {
	ready := corev1.ConditionTrue
	if crash {
		ready = corev1.ConditionFalse
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "192.0.2.17", PodIP: "198.51.100.23", StartTime: &metav1.Time{Time: started},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: started}},
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Time{Time: started}},
			{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: metav1.Time{Time: started}},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: started}},
		},
	}
	for i, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("3a", 32), ContainerID: "containerd://" + strings.Repeat("7f", 32),
			Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: started}}},
		}
		if crash && i == 0 {
			s.Ready, s.Started, s.RestartCount = false, new(false), 4
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 1m20s restarting failed container"}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return status
}

func (a app) configMapName(i int) string { return fmt.Sprintf("%s-config-%d", a.name, i) }

func (a app) configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: a.meta(a.configMapName(i)), Data: map[string]string{"config.yaml": strings.Repeat("setting: value\n", 68)}}
}

func (a app) service() *corev1.Service {
	return &corev1.Service{ObjectMeta: a.meta(a.name), Spec: corev1.ServiceSpec{
		Selector: a.selector(), Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
}

func (a app) deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: a.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: a.selector()},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: a.meta("").Labels}, Spec: a.podSpec()},
	}}
}

// deploymentStatus returns the status of a Deployment with that number of ready replicas.
func deploymentStatus(d *appsv1.Deployment, ready int32) appsv1.DeploymentStatus {
	available := corev1.ConditionTrue
	if ready < *d.Spec.Replicas {
		available = corev1.ConditionFalse
	}
	return appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
		ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: *d.Spec.Replicas - ready,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available, Reason: "MinimumReplicas"}},
	}
}

// kindOf returns the kind of an object.
func kindOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }
