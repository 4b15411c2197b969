package bundle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// noon is the time at which the tests build bundles.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// parse reads an object from YAML, with numbers as a client of the API server has them.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("cannot read the test's own object: %v", err)
	}
	var object map[string]any
	if err := k8sjson.Unmarshal(encoded, &object); err != nil {
		t.Fatalf("cannot read the test's own object: %v", err)
	}
	return &unstructured.Unstructured{Object: object}
}

// parseAll reads several objects.
func parseAll(t testing.TB, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	objects := make([]*unstructured.Unstructured, len(texts))
	for i, text := range texts {
		objects[i] = parse(t, text)
	}
	return objects
}

// shop returns an application with one object of each of several kinds. One of its pods crashes.
func shop(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	return parseAll(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d-1, generation: 2, labels: {app: shop, team: blue}}, spec: {replicas: 2, progressDeadlineSeconds: 300, selector: {matchLabels: {app: shop}}},
		  status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store, uid: r-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, uid: d-1, controller: true}]},
		  spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, availableReplicas: 1}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-aaaaa, namespace: store, uid: p-1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r-1, controller: true}]},
		  status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-bbbbb, namespace: store, uid: p-2, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r-1, controller: true}]},
		  status: {phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store, uid: s-1}, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, namespace: store, uid: c-1}, data: {greeting: hello}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop, namespace: store, uid: o-1}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`,
	)
}

func TestBuildStatesEachObject(t *testing.T) {
	status := bundle.Build(shop(t), nil, noon, bundle.Options{AllowedLabels: []string{"team", "absent"}})
	since := metav1.NewTime(noon.Truncate(time.Second))
	number := func(n int32) *int32 { return &n }
	want := []k8spluginv1alpha1.ResourceHealth{
		{Version: "v1", Kind: "ConfigMap", Namespace: "store", Name: "shop", UID: "c-1", State: "Ready", Reason: "Exists", Since: &since},
		{
			Version: "v1", Kind: "Pod", Namespace: "store", Name: "shop-6b7f-aaaaa", UID: "p-1", State: "Ready", Since: &since,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"}, Desired: number(1), Available: number(1), Serving: true,
		},
		{
			Version: "v1", Kind: "Pod", Namespace: "store", Name: "shop-6b7f-bbbbb", UID: "p-2", State: "Failed", Reason: "CrashLoopBackOff",
			Message: `container "web": CrashLoopBackOff, last exit code 1 (Error)`, Since: &since,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"}, Desired: number(1), Available: number(0),
		},
		{Version: "v1", Kind: "Service", Namespace: "store", Name: "shop", UID: "s-1", State: "Ready", Since: &since},
		{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "store", Name: "shop", UID: "d-1", State: "Pending", Reason: "ReplicasNotReady", Message: "1 of 2 replicas are ready",
			Since: &since, Labels: map[string]string{"team": "blue"}, Desired: number(2), Available: number(1), ProgressDeadlineSeconds: number(300),
			Progress: &k8spluginv1alpha1.ResourceProgress{Generation: 2, Updated: 2, Ready: 1, Available: 1},
		},
		{
			Group: "apps", Version: "v1", Kind: "ReplicaSet", Namespace: "store", Name: "shop-6b7f", UID: "r-1", State: "Pending", Reason: "ReplicasNotReady", Message: "1 of 2 replicas are ready",
			Since: &since, Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "Deployment", Name: "shop"}, Desired: number(2), Available: number(1),
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

func TestReadyIsTrue(t *testing.T) {
	service := `{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store}}`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: shop-0, namespace: store, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: shop, controller: true}]}, status: {phase: Pending}}`
	set := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: shop, namespace: store, uid: s}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1}}`
	cases := map[string]struct {
		objects []string
		ready   bool
		state   string
	}{
		"all ready":                          {[]string{service, set}, true, "Ready"},
		"an owned pod does not count":        {[]string{service, set, pod}, true, "Ready"},
		"a pod whose owner is not here does": {[]string{service, pod}, false, "Pending"},
		"nothing there":                      {nil, false, "Unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := bundle.Build(parseAll(t, tc.objects...), nil, noon, bundle.Options{})
			if status.Ready != tc.ready || status.Summary.State != tc.state || int(status.ResourceCount) != len(tc.objects) {
				t.Errorf("ready %v, state %s, resourceCount %d", status.Ready, status.Summary.State, status.ResourceCount)
			}
		})
	}
}

func TestTwoVersionsOfOneObjectCountOnce(t *testing.T) {
	old := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: shop, namespace: store, uid: a}, status: {phase: Pending}}`)
	recent := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: shop, namespace: store, uid: a}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`)
	forward := bundle.Build([]*unstructured.Unstructured{old, nil, recent, {}}, nil, noon, bundle.Options{})
	backward := bundle.Build([]*unstructured.Unstructured{recent, old}, nil, noon, bundle.Options{})
	if forward.ResourceCount != 1 || encode(t, forward) != encode(t, backward) {
		t.Errorf("one way:\n%s\nother way:\n%s", encode(t, forward), encode(t, backward))
	}
}

func TestBuildDoesNotChangeTheObjects(t *testing.T) {
	objects, untouched := shop(t), shop(t)
	bundle.Build(objects, nil, noon, bundle.Options{})
	if diff := cmp.Diff(untouched, objects); diff != "" {
		t.Errorf("objects of the cache (-before +after):\n%s", diff)
	}
}

func TestSince(t *testing.T) {
	pod := func(uid, phase string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: shop, namespace: store, uid: %q}, status: {phase: %s}}`, uid, phase)
	}
	cases := map[string]struct {
		before, after string
		kept          bool
	}{
		"same state":                       {pod("a", "Pending"), pod("a", "Pending"), true},
		"same state for another reason":    {pod("a", "Pending"), pod("a", "Hibernating"), true},
		"other state":                      {pod("a", "Pending"), pod("a", "Failed"), false},
		"created again, in the same state": {pod("a", "Pending"), pod("b", "Pending"), false},
		"without uid":                      {pod("", "Pending"), pod("", "Pending"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := bundle.Build(parseAll(t, tc.before), nil, noon, bundle.Options{})
			stored := roundTrip(t, first)
			second := bundle.Build(parseAll(t, tc.after), &stored, noon.Add(time.Hour), bundle.Options{})
			want := noon.Truncate(time.Second)
			if !tc.kept {
				want = want.Add(time.Hour)
			}
			if got := second.Resources[0].Since; !got.Time.Equal(want) {
				t.Errorf("since %v, want %v", got, want)
			}
		})
	}
}

// TestSinceIsNotInTheFuture asserts that a time in the future, which a wrong clock has written, is replaced.
func TestSinceIsNotInTheFuture(t *testing.T) {
	ahead := bundle.Build(shop(t), nil, noon.Add(time.Hour), bundle.Options{})
	right := bundle.Build(shop(t), &ahead, noon, bundle.Options{})
	for _, r := range right.Resources {
		if want := noon.Truncate(time.Second); !r.Since.Time.Equal(want) {
			t.Errorf("%s/%s: since %v, want %v", r.Kind, r.Name, r.Since, want)
		}
	}
	if later := bundle.Build(shop(t), &right, noon.Add(time.Minute), bundle.Options{}); !bundle.Equal(&right, &later) {
		t.Errorf("it changes again:\n%s", encode(t, later))
	}
}

func TestBuildingAgainChangesNothing(t *testing.T) {
	first := bundle.Build(shop(t), nil, noon, bundle.Options{})
	stored := roundTrip(t, first)
	second := bundle.Build(shop(t), &stored, noon.Add(48*time.Hour), bundle.Options{})
	if !bundle.Equal(&stored, &second) {
		t.Errorf("time alone changes a bundle:\n%s\nthen\n%s", encode(t, stored), encode(t, second))
	}
}

func TestMessagesOfABundleDoNotTellTime(t *testing.T) {
	status := encode(t, bundle.Build(shop(t), nil, noon, bundle.Options{}))
	if n, want := strings.Count(status, "2026-03-01T12:00:00Z"), 7; n != want || strings.Count(status, "2026") != want {
		t.Errorf("%d times in %s", n, status)
	}
}

// encode returns the JSON of a status.
func encode(t testing.TB, status k8spluginv1alpha1.ResourceBundleStateStatus) string {
	t.Helper()
	encoded, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// roundTrip returns a status as an API server returns it. The order of keys, the form of numbers and the time zone may differ.
func roundTrip(t testing.TB, status k8spluginv1alpha1.ResourceBundleStateStatus) k8spluginv1alpha1.ResourceBundleStateStatus {
	t.Helper()
	var plain map[string]any
	if err := k8sjson.Unmarshal([]byte(encode(t, status)), &plain); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	var back k8spluginv1alpha1.ResourceBundleStateStatus
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// statefulSet returns a StatefulSet with 20 replicas, some of which are ready.
func statefulSet(ready int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "db", "namespace": "store", "uid": "u", "generation": int64(1)},
		"spec":     map[string]any{"replicas": int64(20)},
		"status":   map[string]any{"observedGeneration": int64(1), "replicas": ready + 1, "readyReplicas": ready, "updatedReplicas": ready + 1},
	}}
}

// TestProgressSurvivesARestart asserts that the bundle holds the time of the last progress. A program that sees the object for
// the first time then judges it correctly.
func TestProgressSurvivesARestart(t *testing.T) {
	begin := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	var status k8spluginv1alpha1.ResourceBundleStateStatus
	judged := func(now time.Time) healthscope.State {
		read := bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status})
		return healthscope.Judge(read.Results, healthscope.DefaultPolicy(), now).Members[0].State
	}
	now := begin
	for ready := range int64(19) {
		now = begin.Add(time.Duration(ready) * 40 * time.Second)
		status = bundle.Build([]*unstructured.Unstructured{statefulSet(ready)}, &status, now, bundle.Options{})
		if got := judged(now); got != healthscope.Pending {
			t.Fatalf("with %d of 20 ready after %s it is %s, want Pending", ready, now.Sub(begin), got)
		}
	}
	again := bundle.Build([]*unstructured.Unstructured{statefulSet(18)}, &status, now.Add(time.Minute), bundle.Options{})
	if !bundle.Equal(&status, &again) {
		t.Error("the bundle changes although nothing got further")
	}
	back := bundle.Build([]*unstructured.Unstructured{statefulSet(17)}, &status, now.Add(5*time.Minute), bundle.Options{})
	status = bundle.Build([]*unstructured.Unstructured{statefulSet(18)}, &back, now.Add(9*time.Minute), bundle.Options{})
	if got := judged(now.Add(601 * time.Second)); got != healthscope.Failed {
		t.Errorf("601 s after the last progress it is %s, want Failed", got)
	}
}
