package fleet

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// newStore returns a store without an informer.
func newStore(cluster string) bundleStore {
	return newBundleStore(cluster, []string{""}, nil, func(types.NamespacedName) {})
}

// received returns a bundle of n resources, half of them pods of the others, as received from an API server: decoded from JSON.
func received(tb testing.TB, cluster, name string, n int) *k8spluginv1alpha1.ResourceBundleState {
	tb.Helper()
	since := metav1.NewTime(noon)
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(cluster + name), ResourceVersion: "4711", Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name},
	}}
	for i := range n / 2 {
		web := fmt.Sprintf("web-%d", i)
		labels := map[string]string{"app.kubernetes.io/name": web, "app.kubernetes.io/component": "front", "app.oam.dev/component": web}
		b.Status.Resources = append(b.Status.Resources, k8spluginv1alpha1.ResourceHealth{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: web, UID: fmt.Sprintf("6f1c1f3e-0000-4000-8000-%012d", i),
			State: "Ready", Since: &since, Serving: true, Labels: labels, Desired: new(int32(1)), Available: new(int32(1)),
		}, k8spluginv1alpha1.ResourceHealth{
			Version: "v1", Kind: "Pod", Namespace: "shop", Name: web + "-5d4f8c7b9d-x2x4z", UID: fmt.Sprintf("7a2d2e4f-0000-4000-8000-%012d", i),
			State: "Pending", Reason: "ContainersNotReady", Message: fmt.Sprintf("container %q is starting", web), Since: &since, Labels: labels,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "Deployment", Name: web},
		})
	}
	b.Status.Summary = &k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: int32(n)}
	data, err := json.Marshal(b)
	if err != nil {
		tb.Fatal(err)
	}
	decoded := &k8spluginv1alpha1.ResourceBundleState{}
	if err := json.Unmarshal(data, decoded); err != nil {
		tb.Fatal(err)
	}
	return decoded
}

// heap returns the number of bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // Interned values are freed one collection later.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
