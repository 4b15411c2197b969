package bundle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// TestOnlyMissingEntriesMakeContentsTruncated asserts that contents are truncated only if entries are missing. A bundle over its
// budget first omits lists, and then entries. Readers must know about missing entries, because an object without an entry may
// still exist. Missing lists have no effect on them.
func TestOnlyMissingEntriesMakeContentsTruncated(t *testing.T) {
	tests := map[string]struct {
		entries, count int32
		truncated      bool
		want           bool
	}{
		"whole":                     {entries: 2, count: 2},
		"lists are left out":        {entries: 2, count: 2, truncated: true},
		"entries are left out":      {entries: 1, count: 2, truncated: true, want: true},
		"another monitor's count":   {entries: 1, count: 7},
		"all entries are left out":  {count: 2, truncated: true, want: true},
		"no entries and none there": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{
				Summary: &k8spluginv1alpha1.ResourceCounts{}, ResourceCount: tt.count, Truncated: tt.truncated,
			}}
			for i := range tt.entries {
				b.Status.Resources = append(b.Status.Resources, k8spluginv1alpha1.ResourceHealth{Kind: "Pod", Name: string('a' + i), State: "Ready"})
			}
			if got := bundle.Read("edge", b).Truncated; got != tt.want {
				t.Errorf("Read: truncated is %t, want %t", got, tt.want)
			}
			bundle.Trim(b, nil)
			if got := bundle.Read("edge", b).Truncated; got != tt.want {
				t.Errorf("Read after Trim: truncated is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestWhatIsNotNamedIsCounted asserts that a reader of a truncated bundle gets the same counts as the monitor, which has seen
// all objects.
func TestWhatIsNotNamedIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		limit   int
	}{
		"five thousand pods with owner": {crowd(t, 5000), 0},
		"pods by themselves":            {parseAll(t, standalone(300)...), 20000},
		"more failures than fit":        {parseAll(t, standalone(300)...), 3000},
		"nothing fits":                  {parseAll(t, standalone(30)...), 1},
		"all fits":                      {parseAll(t, standalone(30)...), 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := bundle.Build(tc.objects, nil, noon, bundle.Options{HardLimit: tc.limit})
			b := &k8spluginv1alpha1.ResourceBundleState{Status: status}
			for range 2 {
				contents := bundle.Read("edge", b)
				got := healthscope.Summarize(healthscope.Judge(contents.Results, healthscope.Policy{}, time.Time{}).Members)
				u := contents.Unlisted
				sum := k8spluginv1alpha1.ResourceCounts{
					State: status.Summary.State, Total: int32(got.Total + u.Total), Ready: int32(got.Ready + u.Ready),
					Pending: int32(got.Pending + u.Pending), Failed: int32(got.Failed + u.Failed), Unknown: int32(got.Unknown + u.Unknown),
				}
				if diff := cmp.Diff(*status.Summary, sum); diff != "" {
					t.Errorf("summary (-monitor +reader):\n%s", diff)
				}
				if u.Healthy != u.Ready || (u.Total > 0) && !contents.Truncated {
					t.Errorf("unlisted %+v, truncated %t", u, contents.Truncated)
				}
				bundle.Trim(b, nil)
			}
		})
	}
}

// standalone returns pods without an owner. Every tenth one has failed.
func standalone(n int) []string {
	pods := make([]string, n)
	for i := range pods {
		state := `{phase: Running, containerStatuses: [{name: web, ready: true}]}`
		if i%10 == 0 {
			state = `{phase: Failed}`
		}
		pods[i] = fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web-%03d, namespace: store, uid: u%d}, status: %s}`, i, i, state)
	}
	return pods
}

// TestUnlistedIsNeverNegative reads a summary with invalid counts, which another program may have written.
func TestUnlistedIsNeverNegative(t *testing.T) {
	b := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{
		ResourceCount: 5, Truncated: true, Summary: &k8spluginv1alpha1.ResourceCounts{Total: -7, Ready: -3, Failed: 2},
		Resources: []k8spluginv1alpha1.ResourceHealth{{Kind: "Pod", Name: "a", State: "Ready"}},
	}}
	want := healthscope.Summary{Total: 2, Failed: 2}
	if diff := cmp.Diff(want, bundle.Read("edge", b).Unlisted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAWorkloadThatWorksInPartDoesNotLookFailedForWantOfRoom asserts that a workload with ready pods does not look Failed
// because these pods are left out.
func TestAWorkloadThatWorksInPartDoesNotLookFailedForWantOfRoom(t *testing.T) {
	objects := crowdWith(t, 200, 60)
	objects[0].Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(200), "readyReplicas": int64(199)}
	objects[0].Object["spec"] = map[string]any{"replicas": int64(200)}
	// The crashing pod belongs to a new ReplicaSet, the others to the old one.
	objects = append(objects, parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-9f9f, namespace: store, uid: r2, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, controller: true}]}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}}`))
	objects[3+60].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-9f9f", Controller: new(true)}})
	tested := 0
	for limit := 900; limit < 6000; limit += 110 {
		status := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: limit})
		if entryNamed(status, "Pod", "shop-6b7f-00060") == nil || entryNamed(status, "Deployment", "shop") == nil {
			continue // There is no room for the failed pod or the Deployment.
		}
		ready := 0
		contents := bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status})
		for _, m := range healthscope.Judge(contents.Results, healthscope.Policy{}, time.Time{}).Members {
			switch {
			case m.Kind == "Pod" && !m.Owned:
				t.Errorf("limit %d: %s has lost its owner", limit, m.Name)
			case m.Kind == "Pod" && m.State == healthscope.Ready:
				ready++
			case m.Kind == "Deployment" && m.State != healthscope.Pending && entryNamed(status, "Service", "shop") != nil:
				t.Errorf("limit %d: the Deployment looks %s", limit, m.State)
			}
		}
		if ready == 1 {
			tested++
		}
	}
	if tested == 0 {
		t.Error("no limit puts the test's objects to the test")
	}
}
