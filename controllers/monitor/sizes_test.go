package monitor

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestReconcileWritesLessOfABundleThatIsTooLarge(t *testing.T) {
	t.Parallel()
	refusals := map[string]error{
		"413":  apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"etcd": apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			var objects []*unstructured.Unstructured
			for i := range 2000 {
				objects = append(objects, object("ns", fmt.Sprintf("object-%04d", i), "1-sink", "1"))
			}
			g.change(objects...)
			g.writeErr = refusal
			g.refuseAbove = 150 << 10
			for range 10 {
				if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: sink}); err != nil {
					t.Fatalf("Reconcile: %v", err)
				}
				g.pass(time.Second)
			}
			status := g.stored().Status
			if status.ResourceCount != 2000 || !status.Truncated || len(status.Resources) == 0 {
				t.Errorf("the bundle counts %d and names %d resources, truncated %t; want 2000, some, true", status.ResourceCount, len(status.Resources), status.Truncated)
			}
			if g.writes > 5 {
				t.Errorf("%d writes, want at most 5", g.writes)
			}
		})
	}
}

func TestReconcileNamesWhatMatters(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pods      int
		wantNamed int
	}{
		"2000 pods are all named": {pods: 2000, wantNamed: 2000},
		"5000 pods are counted":   {pods: 5000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			var pods []*unstructured.Unstructured
			for i := range tc.pods {
				pod := object("ns", fmt.Sprintf("packet-processor-86cdc5548d-%05d", i), "1-sink", "1")
				pod.SetKind("Pod")
				pod.SetUID(types.UID(fmt.Sprintf("fde9551b-b880-4c93-8ff4-%012d", i)))
				phase := "Succeeded"
				switch i {
				case tc.pods / 2:
					phase = "Failed"
				case tc.pods - 1:
					phase = "Pending"
				}
				pod.Object["status"] = map[string]any{"phase": phase}
				pods = append(pods, pod)
			}
			g.change(pods...)
			g.reconcile()
			status := g.stored().Status
			summary := status.Summary
			if int(status.ResourceCount) != tc.pods || int(summary.Total) != tc.pods || summary.Failed != 1 || summary.Pending != 1 {
				t.Errorf("counted %d, of these %+v; want %d with one Failed and one Pending", status.ResourceCount, summary, tc.pods)
			}
			if named := len(status.Resources); tc.wantNamed > 0 && named != tc.wantNamed || !status.Truncated {
				t.Errorf("%d pods are named, truncated %t; want %d, true: the lists are left out", named, status.Truncated, tc.wantNamed)
			}
			states := map[string]int{}
			for _, r := range status.Resources {
				states[r.State]++
			}
			if states["Failed"] != 1 || states["Pending"] != 1 {
				t.Errorf("named are %v, want the Failed and the Pending one among them", states)
			}
		})
	}
}

// TestLargeBundlesDoNotBlockSmallOnes has one small bundle, and more large bundles than workers. The writes of the large bundles
// all block.
func TestLargeBundlesDoNotBlockSmallOnes(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	large, handedOver := *g.reconciler, make(chan event.GenericEvent, workers+1)
	g.large = handedOver
	release := make(chan struct{})
	var writing, most, small atomic.Int32
	g.onWrite = func(name types.NamespacedName) {
		if name == sink {
			small.Add(1)
			return
		}
		most.Store(max(most.Load(), writing.Add(1)))
		<-release
		writing.Add(-1)
	}
	list := append([]byte(`["`), make([]byte, 2*smallStatus)...)
	for i := range list[2:] {
		list[2+i] = 'x'
	}
	list = append(list, `"]`...)
	requests := []ctrl.Request{}
	for i := range workers + 1 {
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("large-", i)}}
		b.Status.PodStatuses = list
		if err := g.api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, ctrl.Request{NamespacedName: nameOfBundle(b)})
	}
	var running sync.WaitGroup
	for range largeWorkers {
		running.Go(func() {
			for handed := range handedOver {
				if _, err := large.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(handed.Object)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// One worker processes all of them. It would not reach the small one if it waited for a large one.
	for _, request := range append(requests, ctrl.Request{NamespacedName: sink}) {
		if _, err := g.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if small.Load() != 1 {
		t.Error("the small bundle waits for the large ones")
	}
	close(release)
	close(handedOver)
	running.Wait()
	if most.Load() != largeWorkers || g.writes != len(requests)+1 {
		t.Errorf("%d bundles have been written, of the large ones %d at a time; want %d, %d", g.writes, most.Load(), len(requests)+1, largeWorkers)
	}
}
