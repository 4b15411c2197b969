package fleet

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/healthscope/healthscope/healthscope"
)

// stuck returns a Deployment whose progress deadline is exceeded, its ReplicaSet, a pod of it that no node can take, and a
// failed pod of another workload.
func stuck() []runtime.Object {
	controller := true
	set := map[string]string{"app": "web"}
	owner := func(api, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: name, UID: "uid-" + "x", Controller: &controller}}
	}
	meta := func(name string, labels map[string]string, owners []metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels, OwnerReferences: owners, Generation: 1, CreationTimestamp: metav1.Unix(1700000000, 0)}
	}
	selector := &metav1.LabelSelector{MatchLabels: set}
	one := int32(1)
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta("web", nil, nil), Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: selector}, Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}},
		}},
		&appsv1.ReplicaSet{ObjectMeta: meta("web-1", set, owner("apps/v1", "Deployment", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 1}},
		&corev1.Pod{ObjectMeta: meta("web-1-a", set, owner("apps/v1", "ReplicaSet", "web-1")), Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu."},
		}}},
		&corev1.Pod{ObjectMeta: meta("stranger", map[string]string{"app": "other"}, nil), Status: corev1.PodStatus{Phase: corev1.PodFailed}},
	}
}

func TestJudgePodsFindsTheCause(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	web := healthscope.Key{Cluster: "edge", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, c := range map[string]struct {
		of        healthscope.Key
		reach     Reachability
		forbidden bool
		want      []string
		requests  int
	}{
		"no node fits":           {web, Connected, false, []string{"Pod web-1-a", "nodes are available", "Insufficient cpu"}, 3},
		"pods may not be listed": {web, Connected, true, []string{"may not list its pods", "clusters add with --workloads"}, 2},
		"the cluster is away":    {web, Unreachable, false, nil, 0},
		"a kind without pods":    {healthscope.Key{Cluster: "edge", Kind: "Service", Namespace: "shop", Name: "web"}, Connected, false, nil, 0},
		"an unknown cluster":     {healthscope.Key{Cluster: "moon", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Connected, false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamicfake.NewSimpleDynamicClient(scheme, stuck()...)
			client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if !c.forbidden {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
			})
			o := NewObjects(nil, nil)
			o.setState(ClusterState{Name: "edge", Reachability: c.reach})
			o.ensureCluster("edge").clients.Store(&clusterClients{client: client})
			diagnosis, err := o.JudgePods(t.Context(), c.of, healthscope.DefaultPolicy(), time.Unix(1700000060, 0))
			if err != nil {
				t.Fatal(err)
			}
			cause := diagnosis.Cause
			if diagnosis.Reason != "" { // No pod has failed.
				t.Errorf("the workload is Failed for a pod: %s", diagnosis.Reason)
			}
			for _, part := range c.want {
				if !strings.Contains(cause, part) {
					t.Errorf("cause %q does not say %q", cause, part)
				}
			}
			if c.want == nil && cause != "" {
				t.Errorf("cause %q, want none", cause)
			}
			if got := len(client.Actions()); got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
		})
	}
}

// TestFailedPodMakesTheWorkloadFailed has a Deployment whose pod crashes. The Deployment is Failed only if it has no ready
// replica.
func TestFailedPodMakesTheWorkloadFailed(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := healthscope.Key{Cluster: "edge", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for ready, want := range map[int32]healthscope.Reason{0: "CrashLoopBackOff", 1: ""} {
		objects := stuck()
		two := int32(2)
		web, isDeployment := objects[0].(*appsv1.Deployment)
		pod, isPod := objects[2].(*corev1.Pod)
		if !isDeployment || !isPod {
			t.Fatalf("got %T and %T", objects[0], objects[2])
		}
		web.Spec.Replicas = &two
		web.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: 2 - ready}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}},
		}}}
		o := NewObjects(nil, nil)
		o.setState(ClusterState{Name: "edge", Reachability: Connected})
		o.ensureCluster("edge").clients.Store(&clusterClients{client: dynamicfake.NewSimpleDynamicClient(scheme, objects...)})
		diagnosis, err := o.JudgePods(t.Context(), of, healthscope.DefaultPolicy(), time.Unix(1700000060, 0))
		if err != nil || diagnosis.Reason != want || !strings.Contains(diagnosis.Cause, "CrashLoopBackOff") {
			t.Errorf("with %d ready: reason %q, want %q; cause %q; %v", ready, diagnosis.Reason, want, diagnosis.Cause, err)
		}
	}
}
