package bundle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// every returns limits in bytes.
func every(step, from, to int) (limits []int) {
	for limit := from; limit < to; limit += step {
		limits = append(limits, limit)
	}
	return limits
}

// database returns a StatefulSet with twelve pods, one of which is Ready. The others crash.
func database() []*unstructured.Unstructured {
	objects := parseAll(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: store, uid: s}, spec: {replicas: 12}, status: {replicas: 12}}`)
	for i := range 12 {
		state := `ready: false, state: {waiting: {reason: CrashLoopBackOff}}`
		if i == 7 {
			state = `ready: true`
		}
		objects = append(objects, parse(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: db-%d, namespace: store, uid: p%[1]d,
			ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true}]}, status: {phase: Running, containerStatuses: [{name: db, %s}]}}`, i, state)))
	}
	return objects
}

// update returns a Deployment with an old ReplicaSet, whose pods are Ready, and a new one, whose pod crashes.
func update() []*unstructured.Unstructured {
	objects := crowdWith(200, 60)
	objects[0] = parse(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d}, spec: {replicas: 200}, status: {observedGeneration: 1, replicas: 200, readyReplicas: 199}}`)
	objects[3+60].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-9f9f", Controller: new(true)}})
	return append(objects, parse(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-9f9f, namespace: store, uid: r2, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, controller: true}]}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}}`))
}

// TestABundleOfLimitedSize asserts that a reader of a bundle that has no room for all entries counts and judges its objects as
// the monitor does, which has seen them all.
func TestABundleOfLimitedSize(t *testing.T) {
	cases := map[string]struct {
		objects []*unstructured.Unstructured
		limits  []int
		kept    []string // What has an entry with 1500 bytes and more.
	}{
		"one of many pods crashes":       {crowd(400), []int{100, 1500, 4000, 20000, 60000, 100000}, []string{"Pod/shop-6b7f-00200", "ReplicaSet/shop-6b7f", "Deployment/shop"}},
		"one of five thousand crashes":   {crowd(5000), []int{0}, []string{"Pod/shop-6b7f-02500", "ReplicaSet/shop-6b7f", "Deployment/shop"}},
		"one of few pods crashes":        {crowdWith(12, 6), every(50, 200, 8000), []string{"Pod/shop-6b7f-00006", "ReplicaSet/shop-6b7f", "Deployment/shop"}},
		"all pods are Ready":             {crowdWith(12, -1), every(50, 200, 8000), nil},
		"one pod of a StatefulSet works": {database(), every(50, 300, 8000), []string{"Pod/db-7", "StatefulSet/db"}},
		"an update that crashes":         {update(), every(110, 900, 6000), []string{"ReplicaSet/shop-9f9f", "Deployment/shop"}},
		"pods without an owner":          {standalone(300), []int{3000, 20000}, []string{"Pod/web-000"}},
		"no room at all":                 {standalone(30), []int{1}, nil},
		"room for all":                   {standalone(30), []int{0}, []string{"Pod/web-029"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole := bundle.Build(tc.objects, nil, noon, bundle.Options{HardLimit: 16 << 20, ListBudget: 1})
			want := judged(whole)
			for _, limit := range tc.limits {
				status := bundle.Build(tc.objects, nil, noon, bundle.Options{HardLimit: limit})
				t.Run(fmt.Sprintf("%d bytes", limit), func(t *testing.T) {
					if limit == 0 {
						limit = bundle.DefaultHardLimit
					}
					checkSize(t, whole, status, limit)
					checkLeftOut(t, whole, status)
					for _, name := range tc.kept {
						if kind, name, _ := strings.Cut(name, "/"); limit >= 1500 && entryNamed(status, kind, name) == nil {
							t.Errorf("%s/%s is left out", kind, name)
						}
					}
					checkCounted(t, status)
					for key, state := range judged(status) {
						if state != want[key] {
							t.Errorf("%s looks %s, want %s as with all entries", key, state, want[key])
						}
					}
				})
			}
		})
	}
}

// checkSize fails the test when a status exceeds its limit, or leaves out more than it must.
func checkSize(t *testing.T, whole, status k8spluginv1alpha1.ResourceBundleStateStatus, limit int) {
	t.Helper()
	size, leftOut := len(encode(status)), len(whole.Resources)-len(status.Resources)
	if size > max(limit, 600) || leftOut > 0 && size < limit-500 {
		t.Errorf("it has %d bytes, and leaves %d entries out", size, leftOut)
	}
	if leftOut > 0 && !status.Truncated || status.ResourceCount != whole.ResourceCount || *status.Summary != *whole.Summary {
		t.Errorf("truncated %v, resourceCount %d, summary %v", status.Truncated, status.ResourceCount, *status.Summary)
	}
}

// checkLeftOut fails the test when an entry is left out before one that matters less: an owner before what it owns, an object that is
// not Ready before one that is and that no other entry needs, or an object that counts before pods that are Ready, except for the one
// that shows that a workload works in part.
func checkLeftOut(t *testing.T, whole, status k8spluginv1alpha1.ResourceBundleStateStatus) {
	t.Helper()
	named, readyPods := map[string]bool{}, 0
	for _, r := range status.Resources {
		named[r.Kind+"/"+r.Name] = true
		if r.Kind == "Pod" && r.State == "Ready" {
			readyPods++
		}
	}
	if entryNamed(whole, "Service", "shop") != nil && !named["Service/shop"] && readyPods > 1 {
		t.Errorf("the Service is left out, %d pods that are Ready are not", readyPods)
	}
	for _, r := range whole.Resources {
		switch name := r.Kind + "/" + r.Name; {
		case named[name] && r.Owner != nil && !named[r.Owner.Kind+"/"+r.Owner.Name]:
			t.Errorf("%s is named, its owner is not", name)
		case !named[name] && r.State != "Ready" && (named["Service/shop"] || named["Pod/web-001"]):
			t.Errorf("%s is left out, others that are Ready are not", name)
		}
	}
}

// checkCounted fails the test when a reader of a status counts other objects than its summary.
func checkCounted(t *testing.T, status k8spluginv1alpha1.ResourceBundleStateStatus) {
	t.Helper()
	b := &k8spluginv1alpha1.ResourceBundleState{Status: status}
	for range 2 {
		contents := bundle.Read("edge", b)
		got, u := healthscope.Summarize(healthscope.Judge(contents.Results, healthscope.Policy{}, time.Time{}).Members), contents.Unlisted
		sum := k8spluginv1alpha1.ResourceCounts{
			State: status.Summary.State, Total: int32(got.Total + u.Total), Ready: int32(got.Ready + u.Ready),
			Pending: int32(got.Pending + u.Pending), Failed: int32(got.Failed + u.Failed), Unknown: int32(got.Unknown + u.Unknown),
		}
		if diff := cmp.Diff(*status.Summary, sum); diff != "" {
			t.Errorf("summary (-monitor +reader):\n%s", diff)
		}
		if u.Healthy != u.Ready || contents.Truncated != (len(status.Resources) < int(status.ResourceCount)) {
			t.Errorf("unlisted %+v, truncated %t", u, contents.Truncated)
		}
		bundle.Trim(b, nil)
	}
}

// judged returns the states of the objects in a status, as a reader judges them.
func judged(status k8spluginv1alpha1.ResourceBundleStateStatus) map[healthscope.Key]healthscope.State {
	states := map[healthscope.Key]healthscope.State{}
	for _, m := range healthscope.Judge(read(status).Results, healthscope.DefaultPolicy(), noon).Members {
		states[m.Key] = m.State
	}
	return states
}

// TestOwnersInACircleAreNotFollowedForever builds a bundle of objects that own each other, which nothing prevents in a cluster.
func TestOwnersInACircleAreNotFollowedForever(t *testing.T) {
	objects := parseAll(
		`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: store, uid: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, controller: true}]}, status: {phase: Failed}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: store, uid: b, ownerReferences: [{apiVersion: v1, kind: Pod, name: a, controller: true}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
	)
	status := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: 450})
	if len(status.Resources) != 1 || entryNamed(status, "Pod", "a") == nil {
		t.Errorf("resources %+v, want that of the pod that has failed", status.Resources)
	}
}

func TestTwoThousandPodsAreAllNamed(t *testing.T) {
	status := bundle.Build(crowd(2000), nil, noon, bundle.Options{})
	if size := len(encode(status)); len(status.Resources) != 2003 || size > bundle.DefaultHardLimit {
		t.Errorf("%d resources in %d bytes", len(status.Resources), size)
	}
}

// TestOnlyMissingEntriesMakeContentsTruncated asserts that contents are truncated only if entries are missing. A bundle over its
// budget first omits lists, and then entries. Readers must know about missing entries, because an object without an entry may
// still exist. Missing lists have no effect on them.
func TestOnlyMissingEntriesMakeContentsTruncated(t *testing.T) {
	cases := map[string]struct {
		entries, count  int32
		truncated, want bool
	}{
		"whole":                     {entries: 2, count: 2},
		"lists are left out":        {entries: 2, count: 2, truncated: true},
		"entries are left out":      {entries: 1, count: 2, truncated: true, want: true},
		"another monitor's count":   {entries: 1, count: 7},
		"all entries are left out":  {count: 2, truncated: true, want: true},
		"no entries and none there": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{
				Summary: &k8spluginv1alpha1.ResourceCounts{}, ResourceCount: tc.count, Truncated: tc.truncated,
			}}
			for i := range tc.entries {
				b.Status.Resources = append(b.Status.Resources, k8spluginv1alpha1.ResourceHealth{Kind: "Pod", Name: string('a' + i), State: "Ready"})
			}
			for _, when := range []string{"before", "after"} {
				if got := bundle.Read("edge", b).Truncated; got != tc.want {
					t.Errorf("%s Trim: truncated is %t, want %t", when, got, tc.want)
				}
				bundle.Trim(b, nil)
			}
		})
	}
}

// TestUnlistedIsNeverNegative reads a summary with invalid counts, which another program may have written.
func TestUnlistedIsNeverNegative(t *testing.T) {
	contents := read(k8spluginv1alpha1.ResourceBundleStateStatus{
		ResourceCount: 5, Truncated: true, Summary: &k8spluginv1alpha1.ResourceCounts{Total: -7, Ready: -3, Failed: 2},
		Resources: []k8spluginv1alpha1.ResourceHealth{{Kind: "Pod", Name: "a", State: "Ready"}},
	})
	if diff := cmp.Diff(healthscope.Summary{Total: 2, Failed: 2}, contents.Unlisted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
