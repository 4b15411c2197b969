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

func TestBuildStatesEachObject(t *testing.T) {
	status := bundle.Build(shop(), nil, noon, bundle.Options{AllowedLabels: []string{"team", "absent"}})
	since := metav1.NewTime(noon.Truncate(time.Second))
	want := []k8spluginv1alpha1.ResourceHealth{
		{Version: "v1", Kind: "ConfigMap", Namespace: "store", Name: "shop", UID: "c-1", State: "Ready", Reason: "Exists", Since: &since},
		{
			Version: "v1", Kind: "Pod", Namespace: "store", Name: "shop-6b7f-aaaaa", UID: "p-1", State: "Ready", Since: &since,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"}, Desired: new(int32(1)), Available: new(int32(1)), Serving: true,
		},
		{
			Version: "v1", Kind: "Pod", Namespace: "store", Name: "shop-6b7f-bbbbb", UID: "p-2", State: "Failed", Reason: "CrashLoopBackOff",
			Message: `container "web": CrashLoopBackOff, last exit code 1 (Error)`, Since: &since,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"}, Desired: new(int32(1)), Available: new(int32(0)),
		},
		{Version: "v1", Kind: "Service", Namespace: "store", Name: "shop", UID: "s-1", State: "Ready", Since: &since},
		{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "store", Name: "shop", UID: "d-1", State: "Pending", Reason: "ReplicasNotReady", Message: "1 of 2 replicas are ready",
			Since: &since, Labels: map[string]string{"team": "blue"}, Desired: new(int32(2)), Available: new(int32(1)), ProgressDeadlineSeconds: new(int32(300)),
			Progress: &k8spluginv1alpha1.ResourceProgress{Generation: 2, Updated: 2, Ready: 1, Available: 1},
		},
		{
			Group: "apps", Version: "v1", Kind: "ReplicaSet", Namespace: "store", Name: "shop-6b7f", UID: "r-1", State: "Pending", Reason: "ReplicasNotReady", Message: "1 of 2 replicas are ready",
			Since: &since, Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "Deployment", Name: "shop"}, Desired: new(int32(2)), Available: new(int32(1)),
			Progress: &k8spluginv1alpha1.ResourceProgress{Ready: 1, Available: 1},
		},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Namespace: "store", Name: "shop", UID: "o-1", State: "Ready", Reason: "Exists", Since: &since},
	}
	if diff := cmp.Diff(want, status.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	summary := &k8spluginv1alpha1.ResourceCounts{State: "Pending", Total: 4, Ready: 3, Pending: 1}
	if diff := cmp.Diff(summary, status.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if status.Ready || status.ResourceCount != 7 || status.Truncated {
		t.Errorf("ready %v, resourceCount %d, truncated %v", status.Ready, status.ResourceCount, status.Truncated)
	}
}

func TestWhenABundleIsReady(t *testing.T) {
	service := `{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store}}`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: shop-0, namespace: store, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: shop, controller: true}]}, status: {phase: Pending}}`
	set := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: shop, namespace: store, uid: s}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1}}`
	cases := map[string]struct {
		objects []string
		ready   bool
		state   string
		count   int32
	}{
		"all ready":                          {[]string{service, set}, true, "Ready", 2},
		"an owned pod does not count":        {[]string{service, set, pod}, true, "Ready", 3},
		"a pod whose owner is not here does": {[]string{service, pod}, false, "Pending", 2},
		"nothing there":                      {nil, false, "Unknown", 0},
		"an object that is passed twice":     {[]string{service, service}, true, "Ready", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := bundle.Build(parseAll(tc.objects...), nil, noon, bundle.Options{})
			if status.Ready != tc.ready || status.Summary.State != tc.state || status.ResourceCount != tc.count {
				t.Errorf("ready %v, state %s, resourceCount %d", status.Ready, status.Summary.State, status.ResourceCount)
			}
		})
	}
}

func TestSince(t *testing.T) {
	pod := func(uid, phase string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: shop, namespace: store, uid: %q}, status: {phase: %s}}`, uid, phase)
	}
	cases := map[string]struct {
		before, after string
		passed        time.Duration
		kept          bool
	}{
		"same state":                       {pod("a", "Pending"), pod("a", "Pending"), time.Hour, true},
		"same state for another reason":    {pod("a", "Pending"), pod("a", "Hibernating"), time.Hour, true},
		"other state":                      {pod("a", "Pending"), pod("a", "Failed"), time.Hour, false},
		"created again, in the same state": {pod("a", "Pending"), pod("b", "Pending"), time.Hour, false},
		"without uid":                      {pod("", "Pending"), pod("", "Pending"), time.Hour, true},
		"in the future, by a wrong clock":  {pod("a", "Pending"), pod("a", "Pending"), -time.Hour, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := roundTrip(bundle.Build(parseAll(tc.before), nil, noon, bundle.Options{}))
			second := bundle.Build(parseAll(tc.after), &first, noon.Add(tc.passed), bundle.Options{})
			want := noon.Truncate(time.Second)
			if !tc.kept {
				want = want.Add(tc.passed)
			}
			if got := second.Resources[0].Since; !got.Time.Equal(want) {
				t.Errorf("since %v, want %v", got, want)
			}
		})
	}
}

// statefulSet returns a StatefulSet with 20 replicas, some of which are ready.
func statefulSet(ready int) []*unstructured.Unstructured {
	return parseAll(fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: store, uid: u, generation: 1}, spec: {replicas: 20},
		status: {observedGeneration: 1, replicas: %d, readyReplicas: %d, updatedReplicas: %[1]d}}`, ready+1, ready))
}

// TestProgressIsNotInTheFuture asserts that a time that a wrong clock has written is replaced.
func TestProgressIsNotInTheFuture(t *testing.T) {
	begun := bundle.Build(statefulSet(0), nil, noon.Add(time.Hour), bundle.Options{})
	ahead := bundle.Build(statefulSet(3), &begun, noon.Add(time.Hour), bundle.Options{})
	right := bundle.Build(statefulSet(3), &ahead, noon, bundle.Options{})
	if got, want := right.Resources[0].ProgressedAt, noon.Truncate(time.Second); got == nil || !got.Time.Equal(want) {
		t.Errorf("progressed at %v, want %v", got, want)
	}
}

// TestProgressSurvivesARestart asserts that the bundle holds the time of the last progress. A program that sees the object for
// the first time then judges it correctly.
func TestProgressSurvivesARestart(t *testing.T) {
	begin := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	var status k8spluginv1alpha1.ResourceBundleStateStatus
	judged := func(now time.Time) healthscope.State {
		return healthscope.Judge(read(status).Results, healthscope.DefaultPolicy(), now).Members[0].State
	}
	now := begin
	for ready := range 19 {
		now = begin.Add(time.Duration(ready) * 40 * time.Second)
		status = bundle.Build(statefulSet(ready), &status, now, bundle.Options{})
		if got := judged(now); got != healthscope.Pending {
			t.Fatalf("with %d of 20 ready after %s it is %s, want Pending", ready, now.Sub(begin), got)
		}
	}
	again := bundle.Build(statefulSet(18), &status, now.Add(time.Minute), bundle.Options{})
	if !bundle.Equal(&status, &again) {
		t.Error("the bundle changes although nothing got further")
	}
	back := bundle.Build(statefulSet(17), &status, now.Add(5*time.Minute), bundle.Options{})
	status = bundle.Build(statefulSet(18), &back, now.Add(9*time.Minute), bundle.Options{})
	if got := judged(now.Add(601 * time.Second)); got != healthscope.Failed {
		t.Errorf("601 s after the last progress it is %s, want Failed", got)
	}
}
