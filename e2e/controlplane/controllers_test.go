package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// auditPolicy records who asked for what.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:default:viewer"]
- level: None
`

func TestControllers(t *testing.T) {
	plane := startPlane(t, Options{Name: "hub", Controllers: true, AuditPolicy: auditPolicy})
	clientset := newClientset(t, plane)
	web := createDeployment(t, clientset, "web", 2, nil)

	t.Run("the pods of a Deployment become Ready on the nodes", func(t *testing.T) {
		awaitDeployment(t, clientset, "web", 2)
		for _, pod := range podsOf(t, clientset, web) {
			if !strings.HasPrefix(pod.Spec.NodeName, "node-") || !strings.HasPrefix(pod.Status.PodIP, "10.244.") {
				t.Errorf("pod %q: node %q, address %q", pod.Name, pod.Spec.NodeName, pod.Status.PodIP)
			}
		}
	})
	t.Run("a running pod crashes and recovers, more than once", func(t *testing.T) {
		testCrashAndRecover(t, clientset, podsOf(t, clientset, web)[0].Name)
	})
	t.Run("a pod born with the annotation is never Ready", func(t *testing.T) {
		testBornCrashing(t, clientset)
	})
	t.Run("a crashing pod can be deleted", func(t *testing.T) {
		testDeleteCrashing(t, clientset, web)
	})
	t.Run("a service account has its own rights and no others", func(t *testing.T) {
		testServiceAccount(t, plane)
	})
	t.Run("kubectl works", func(t *testing.T) {
		output, err := plane.KubectlCommand(t.Context(), "version", "--output=json").Output()
		if err != nil {
			t.Fatalf("kubectl: %v", err)
		}
		if !strings.Contains(string(output), `"serverVersion"`) || strings.Contains(string(output), "v0.0.0-master") {
			t.Errorf("versions are not stamped: %s", output)
		}
	})
	t.Run("an outage of the API server keeps data and port", func(t *testing.T) {
		testOutage(t, plane, clientset)
	})

	stopPlane(t, plane)
	if err := nothingLeft(t.Context(), plane.work.path); err != nil {
		t.Errorf("after Stop: %v", err)
	}
}

func createDeployment(t *testing.T, clientset kubernetes.Interface, name string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	deployment, err := clientset.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}, {Name: "sidecar", Image: "sidecar:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot create deployment: %v", err)
	}
	return deployment
}

func awaitDeployment(t *testing.T, clientset kubernetes.Interface, name string, ready int32) {
	t.Helper()
	eventually(t, "deployment "+name, func(ctx context.Context) error {
		d, err := clientset.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != ready {
			err = fmt.Errorf("%d replicas are ready, want %d", d.Status.ReadyReplicas, ready)
		}
		return err
	})
}

func podsOf(t *testing.T, clientset kubernetes.Interface, deployment *appsv1.Deployment) []corev1.Pod {
	t.Helper()
	selector := metav1.FormatLabelSelector(deployment.Spec.Selector)
	pods, err := clientset.CoreV1().Pods(deployment.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("cannot list pods of %q: %v", deployment.Name, err)
	}
	return pods.Items
}

// annotate sets or, with nil, removes the crash annotation.
func annotate(t *testing.T, clientset kubernetes.Interface, pod string, value *string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{CrashAnnotation: value}}})
	if err != nil {
		t.Fatalf("cannot encode patch: %v", err)
	}
	pods := clientset.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("cannot annotate pod: %v", err)
	}
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return corev1.PodCondition{}
	}
	return pod.Status.Conditions[i]
}

func awaitPodReady(t *testing.T, clientset kubernetes.Interface, name string, want corev1.ConditionStatus) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name, func(ctx context.Context) (err error) {
		pod, err = clientset.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err == nil && condition(pod, corev1.PodReady).Status != want {
			err = fmt.Errorf("condition Ready is %q, want %q", condition(pod, corev1.PodReady).Status, want)
		}
		return err
	})
	return pod
}

func testCrashAndRecover(t *testing.T, clientset kubernetes.Interface, name string) {
	for round := range int32(3) {
		before := awaitPodReady(t, clientset, name, corev1.ConditionTrue)
		annotate(t, clientset, name, new("true"))
		crashed := awaitPodReady(t, clientset, name, corev1.ConditionFalse)
		checkCrashed(t, crashed, 5+round)
		awaitDeployment(t, clientset, "web", 1)
		if diff := cmp.Diff(before.Status.PodIPs, crashed.Status.PodIPs); diff != "" {
			t.Errorf("a crash must not change the addresses: %s", diff)
		}

		annotate(t, clientset, name, nil)
		recovered := awaitPodReady(t, clientset, name, corev1.ConditionTrue)
		awaitDeployment(t, clientset, "web", 2)
		for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
			got := condition(recovered, kind)
			want := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(corev1.PodCondition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("condition after recovery (-want +got):\n%s", diff)
			}
		}
		for _, c := range recovered.Status.ContainerStatuses {
			if !c.Ready || c.State.Running == nil || c.State.Waiting != nil || c.RestartCount != 6+round || c.LastTerminationState.Terminated == nil {
				t.Errorf("container after recovery: %+v", c)
			}
		}
	}
}

// checkCrashed compares the whole picture that a crash loop gives, times apart.
func checkCrashed(t *testing.T, pod *corev1.Pod, restarts int32) {
	t.Helper()
	if pod.Status.Phase != corev1.PodRunning {
		t.Errorf("phase of a crashing pod: want Running, got %q", pod.Status.Phase)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		got := condition(pod, kind)
		want := corev1.PodCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [main sidecar]",
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(corev1.PodCondition{}, "LastTransitionTime")); diff != "" {
			t.Errorf("condition of a crashing pod (-want +got):\n%s", diff)
		}
	}
	want := make([]corev1.ContainerStatus, 0, 2)
	for _, name := range []string{"main", "sidecar"} {
		message := fmt.Sprintf("back-off 2m40s restarting failed container=%s pod=%s_%s(%s)", name, pod.Name, pod.Namespace, pod.UID)
		want = append(want, corev1.ContainerStatus{
			Name: name, Image: name + ":1", RestartCount: restarts, Started: new(false),
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
		})
	}
	ignoreTimes := cmpopts.IgnoreFields(corev1.ContainerStateTerminated{}, "StartedAt", "FinishedAt")
	if diff := cmp.Diff(want, pod.Status.ContainerStatuses, ignoreTimes); diff != "" {
		t.Errorf("containers of a crashing pod (-want +got):\n%s", diff)
	}
}

func testBornCrashing(t *testing.T, clientset kubernetes.Interface) {
	pods := clientset.CoreV1().Pods(metav1.NamespaceDefault)
	watcher, err := pods.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=born-crashing", TimeoutSeconds: new(int64(testTimeout.Seconds()))})
	if err != nil {
		t.Fatalf("cannot watch pods: %v", err)
	}
	defer watcher.Stop()
	createDeployment(t, clientset, "born-crashing", 1, map[string]string{CrashAnnotation: "true"})
	var crashed *corev1.Pod
	for event := range watcher.ResultChan() { // The first opinion on Ready that anybody could see.
		if pod, ok := event.Object.(*corev1.Pod); ok && condition(pod, corev1.PodReady).Status != "" {
			crashed = pod
			break
		}
	}
	if crashed == nil {
		t.Fatal("no pod with a condition Ready")
	}
	checkCrashed(t, crashed, 5)
	if crashed.Status.PodIP == "" || crashed.Status.HostIP == "" || crashed.Status.StartTime == nil {
		t.Errorf("a crashing pod has addresses and a start time, this one: %+v", crashed.Status)
	}
	annotate(t, clientset, crashed.Name, nil)
	awaitPodReady(t, clientset, crashed.Name, corev1.ConditionTrue)
}

func testDeleteCrashing(t *testing.T, clientset kubernetes.Interface, deployment *appsv1.Deployment) {
	name := podsOf(t, clientset, deployment)[0].Name
	annotate(t, clientset, name, new("true"))
	awaitPodReady(t, clientset, name, corev1.ConditionFalse)
	pods := clientset.CoreV1().Pods(deployment.Namespace)
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("cannot delete pod: %v", err)
	}
	eventually(t, "pod gone", func(ctx context.Context) error {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
	awaitDeployment(t, clientset, deployment.Name, 2)
}

func testServiceAccount(t *testing.T, plane *ControlPlane) {
	manifest := filepath.Join(t.TempDir(), "viewer.yaml")
	if err := os.WriteFile(manifest, []byte(viewerManifest), 0o600); err != nil {
		t.Fatalf("cannot write manifest: %v", err)
	}
	if err := plane.InstallManifests(t.Context(), manifest); err != nil {
		t.Fatalf("InstallManifests: %v", err)
	}
	path := filepath.Join(t.TempDir(), "viewer.kubeconfig")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // Too open: the launcher must not leave a token in such a file.
		t.Fatalf("cannot write kubeconfig: %v", err)
	}
	if err := plane.ServiceAccountKubeconfig(t.Context(), metav1.NamespaceDefault, "viewer", path); err != nil {
		t.Fatalf("ServiceAccountKubeconfig: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions of the kubeconfig: want 0600, got %v (error %v)", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("cannot read kubeconfig: %v", err)
	}
	viewer, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("cannot make client: %v", err)
	}
	awaitRight(t, newClientset(t, plane), "system:serviceaccount:default:viewer", &authorizationv1.ResourceAttributes{
		Namespace: metav1.NamespaceDefault, Resource: "configmaps", Verb: "list",
	})
	if _, err := viewer.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the viewer may list config maps, but: %v", err)
	}
	if _, err := viewer.CoreV1().Secrets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer may not list secrets: want Forbidden, got %v", err)
	}
	err = plane.ServiceAccountKubeconfig(t.Context(), metav1.NamespaceDefault, "nobody", path)
	if !apierrors.IsNotFound(err) {
		t.Errorf("kubeconfig of an account that does not exist: want NotFound, got %v", err)
	}
	eventually(t, "audit log", func(context.Context) error {
		got, err := readAudit(plane.AuditLogPath())
		want := []string{"list configmaps 200", "list secrets 403"}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			err = errors.New(diff)
		}
		return err
	})
}

// awaitRight waits until the API server heeds the roles that give a user a right. It does not ask in the user's name.
func awaitRight(t *testing.T, clientset kubernetes.Interface, user string, right *authorizationv1.ResourceAttributes) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: right}}
	eventually(t, "right of "+user, func(ctx context.Context) error {
		answer, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = errors.New("not allowed: " + answer.Status.Reason)
		}
		return err
	})
}

const viewerManifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: ServiceAccount, name: viewer, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer}
`

// readAudit reads "verb resource status" of all events.
func readAudit(path string) (_ []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var events []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var event struct {
			Verb           string
			ObjectRef      struct{ Resource string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		events = append(events, fmt.Sprintf("%s %s %d", event.Verb, event.ObjectRef.Resource, event.ResponseStatus.Code))
	}
	return events, nil
}

func testOutage(t *testing.T, plane *ControlPlane, clientset kubernetes.Interface) {
	before := plane.Config().Host
	if err := plane.StopAPIServer(); err != nil {
		t.Fatalf("StopAPIServer: %v", err)
	}
	if err := plane.StopAPIServer(); err != nil {
		t.Errorf("second StopAPIServer: %v", err)
	}
	if err := refused(t.Context(), before); err != nil {
		t.Errorf("during the outage: %v", err)
	}
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatalf("StartAPIServer: %v", err)
	}
	if after := plane.Config().Host; after != before {
		t.Errorf("address: want %q as before, got %q", before, after)
	}
	// The same clients work on, and so do the controllers: a Deployment made now gets its pods.
	if _, err := clientset.AppsV1().Deployments(metav1.NamespaceDefault).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("the data are lost: %v", err)
	}
	createDeployment(t, clientset, "after", 1, nil)
	awaitDeployment(t, clientset, "after", 1)
}
