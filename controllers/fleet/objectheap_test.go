package fleet

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// listedDeployment returns a Deployment as created by an OAM runtime, decoded from JSON.
func listedDeployment(tb testing.TB, i int) *unstructured.Unstructured {
	tb.Helper()
	name := fmt.Sprintf("component-%05d", i)
	text := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
		"namespace": "shop", "name": %[1]q, "uid": "6f1c1f3e-0000-4000-8000-%012[2]d", "resourceVersion": "%[2]d", "generation": 1,
		"labels": {"app.oam.dev/name": "application-%[3]d", "app.oam.dev/component": %[1]q, "app.oam.dev/resourceType": "WORKLOAD", "app.oam.dev/revision": "%[1]s-v1",
			"app.kubernetes.io/name": %[1]q, "app.kubernetes.io/managed-by": "oam", "team": "shop"}},
		"spec": {"replicas": 2}, "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2}}`, name, i, i/10)
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		tb.Fatal(err)
	}
	return u
}

// TestMemoryPerObjectIsBounded: the memory for an object with all its labels is at most what a budget counts for it.
func TestMemoryPerObjectIsBounded(t *testing.T) {
	const objects = 5_000
	before := heap()
	o := NewObjects([]string{"app.oam.dev/component"}, nil)
	w := newKindInformer(o.kindOptions, informerKey{Kind{"local", deployments}, ""}, false, nil, func() {})
	estimate := int64(0)
	for i := range objects {
		u := listedDeployment(t, i)
		estimate += usageOfObject(u).bytes
		kept, err := w.store.Transformer()(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	held := int64(heap() - before)
	t.Logf("%d bytes of heap for each of %d objects, %d are estimated", held/objects, objects, estimate/objects)
	if held > estimate {
		t.Errorf("%d bytes are held, and %d are estimated", held, estimate)
	}
	runtime.KeepAlive(w)
}
