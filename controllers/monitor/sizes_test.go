package monitor

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

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
			if g.writes > maxShrinks+1 {
				t.Errorf("%d writes, want at most %d", g.writes, maxShrinks+1)
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

// TestLargeBundlesLeaveRoomForSmallOnes has more large bundles than workers,
// whose writes all take for ever, and one small bundle.
func TestLargeBundlesLeaveRoomForSmallOnes(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.large = newLane(largeAtATime)
	queue := make(chan types.NamespacedName, 2*workers)
	g.wake = func(name types.NamespacedName) { queue <- name }
	release := make(chan struct{})
	var mu sync.Mutex
	writing := 0
	g.onWrite = func(name types.NamespacedName) {
		if name == sink {
			return
		}
		mu.Lock()
		writing++
		mu.Unlock()
		<-release
	}
	list := append([]byte(`["`), make([]byte, 2*smallStatus)...)
	for i := range list[2:] {
		list[2+i] = 'x'
	}
	list = append(list, `"]`...)
	var large []types.NamespacedName
	for i := range workers {
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("large-", i)}}
		b.Status.PodStatuses = list
		if err := g.api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		large = append(large, nameOfBundle(b))
	}
	// Each worker takes what comes next; a large bundle that may not pass costs it nothing.
	for _, name := range append(large, sink) {
		queue <- name
	}
	done := make(chan types.NamespacedName, 2*workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for name := range queue {
				if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
					t.Error(err)
				}
				done <- name
			}
		})
	}
	timeout := time.After(10 * time.Second)
	await := func(looks int, what string) {
		for range looks {
			select {
			case <-done:
			case <-timeout:
				t.Fatal(what)
			}
		}
	}
	await(workers-largeAtATime+1, "the small bundle waits for the large ones") // It, and the large ones that may not pass.
	mu.Lock()
	if writing > largeAtATime {
		t.Errorf("%d large bundles are written at a time, want %d", writing, largeAtATime)
	}
	mu.Unlock()
	close(release)
	await(workers, "a large bundle waits for ever")
	close(queue)
	running.Wait()
	if writing != workers {
		t.Errorf("%d large bundles have been written, want %d", writing, workers)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		want bool
	}{
		"413":       {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"etcd":      {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}}, true},
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), false},
	}
	for name, tc := range cases {
		if got := tooLarge(fmt.Errorf("cannot write: %w", tc.err)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
