package bundle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

var (
	pods        = schema.GroupKind{Kind: "Pod"}
	replicaSets = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	configMaps  = schema.GroupKind{Kind: "ConfigMap"}
	services    = schema.GroupKind{Kind: "Service"}
)

// readableOnly returns the objects whose kinds can be read.
func readableOnly(objects []*unstructured.Unstructured, unreadable ...schema.GroupKind) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool {
		return slices.Contains(unreadable, u.GroupVersionKind().GroupKind())
	})
}

// entryNamed returns the entry of an object, or nil if there is none.
func entryNamed(status k8spluginv1alpha1.ResourceBundleStateStatus, kind, name string) *k8spluginv1alpha1.ResourceHealth {
	for i, r := range status.Resources {
		if r.Kind == kind && r.Name == name {
			return &status.Resources[i]
		}
	}
	return nil
}

func TestObjectsThatCannotBeReadStayUnknown(t *testing.T) {
	cases := map[string]struct {
		unreadable []schema.GroupKind
		summary    k8spluginv1alpha1.ResourceCounts
		unknown    []string
		ready      bool
	}{
		"none":               {summary: k8spluginv1alpha1.ResourceCounts{State: "Pending", Total: 4, Ready: 3, Pending: 1}},
		"one that counts":    {unreadable: []schema.GroupKind{services}, summary: k8spluginv1alpha1.ResourceCounts{State: "Unknown", Total: 4, Ready: 2, Pending: 1, Unknown: 1}, unknown: []string{"Service/shop"}},
		"those that explain": {unreadable: []schema.GroupKind{pods, replicaSets}, summary: k8spluginv1alpha1.ResourceCounts{State: "Pending", Total: 4, Ready: 3, Pending: 1}, unknown: []string{"Pod/shop-6b7f-aaaaa", "Pod/shop-6b7f-bbbbb", "ReplicaSet/shop-6b7f"}},
		"one that was never": {unreadable: []schema.GroupKind{{Group: "batch", Kind: "Job"}}, summary: k8spluginv1alpha1.ResourceCounts{State: "Pending", Total: 4, Ready: 3, Pending: 1}},
		"of another group":   {unreadable: []schema.GroupKind{{Group: "acme.example", Kind: "Service"}}, summary: k8spluginv1alpha1.ResourceCounts{State: "Pending", Total: 4, Ready: 3, Pending: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			previous := roundTrip(t, bundle.Build(shop(t), nil, noon, bundle.Options{}))
			status := bundle.Build(readableOnly(shop(t), tc.unreadable...), &previous, noon.Add(time.Hour), bundle.Options{Unreadable: tc.unreadable})
			if diff := cmp.Diff(&tc.summary, status.Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			var unknown []string
			for _, r := range status.Resources {
				if r.State == "Unknown" {
					unknown = append(unknown, r.Kind+"/"+r.Name)
				}
			}
			if diff := cmp.Diff(tc.unknown, unknown); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			if status.ResourceCount != 7 || len(status.Resources) != 7 || status.Ready || status.Truncated != (len(tc.unknown) > 0) {
				t.Errorf("%d of %d resources, ready %t, truncated %t", len(status.Resources), status.ResourceCount, status.Ready, status.Truncated)
			}
		})
	}
}

func TestWhatStaysOfAnObjectThatCannotBeRead(t *testing.T) {
	opts := bundle.Options{AllowedLabels: []string{"app", "team"}}
	objects := shop(t)
	objects[2].SetLabels(map[string]string{"app": "shop", "team": "blue"})
	previous := bundle.Build(objects, nil, noon, opts)
	opts.Unreadable, opts.AllowedLabels = []schema.GroupKind{pods}, []string{"team"}
	later := noon.Add(time.Hour)
	status := bundle.Build(readableOnly(objects, pods), &previous, later, opts)
	since := metav1.NewTime(later.Truncate(time.Second))
	want := &k8spluginv1alpha1.ResourceHealth{
		Version: "v1", Kind: "Pod", Namespace: "store", Name: "shop-6b7f-aaaaa", UID: "p-1", State: "Unknown", Reason: "Forbidden",
		Message: "the monitor may not read objects of this kind, or was given no answer", Since: &since, Labels: map[string]string{"team": "blue"},
		Owner: &k8spluginv1alpha1.ResourceOwner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"},
	}
	if diff := cmp.Diff(want, entryNamed(status, "Pod", "shop-6b7f-aaaaa")); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	if len(status.PodStatuses) > 0 || len(status.DeploymentStatuses) == 0 {
		t.Errorf("old pods %s, Deployments that can be read %s", status.PodStatuses, status.DeploymentStatuses)
	}
	t.Run("given all the same", func(t *testing.T) {
		same := bundle.Build(objects, &previous, later, opts)
		if !bundle.Equal(&status, &same) {
			t.Errorf("what the caller remembers of the pods makes a difference:\n%s\nnot\n%s", encode(t, same), encode(t, status))
		}
		first := bundle.Build(objects, nil, later, opts)
		if got := entryNamed(first, "Pod", "shop-6b7f-aaaaa"); got == nil || got.State != "Unknown" {
			t.Errorf("without a past the pod is %+v", got)
		}
	})
}

func TestABundleIsNotReadyWhileAnythingInItCannotBeRead(t *testing.T) {
	objects := parseAll(t,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: shop, namespace: store, uid: s}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: shop-0, namespace: store, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: shop, controller: true}]}, status: {phase: Pending}}`,
	)
	previous := bundle.Build(objects, nil, noon, bundle.Options{})
	if !previous.Ready {
		t.Fatal("the test's own bundle is not ready")
	}
	if got := bundle.Build(objects[:1], &previous, noon, bundle.Options{Unreadable: []schema.GroupKind{pods}}); got.Ready {
		t.Error("it is ready")
	}
}

// TestWhatATruncatedBundleDidNotNameIsNotGivenUp asserts that objects without an entry in a truncated bundle remain counted.
// They may be of a kind that cannot be read.
func TestWhatATruncatedBundleDidNotNameIsNotGivenUp(t *testing.T) {
	objects := crowd(t, 400)
	opts := bundle.Options{HardLimit: 20000}
	previous := roundTrip(t, bundle.Build(objects, nil, noon, opts))
	opts.Unreadable = []schema.GroupKind{pods}
	status := roundTrip(t, bundle.Build(readableOnly(objects, pods), &previous, noon, opts))
	if status.ResourceCount != 403 || !bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status}).Truncated {
		t.Errorf("resourceCount %d, truncated %t", status.ResourceCount, status.Truncated)
	}
	opts.Unreadable = nil
	back := bundle.Build(objects, &status, noon, opts)
	if back.ResourceCount != 403 {
		t.Errorf("resourceCount %d once all can be read", back.ResourceCount)
	}
}

// warehouse returns 40 pods, four of them failed and the others pending, and 200 ConfigMaps.
func warehouse(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects := parseAll(t, standalone(40)...)
	for i, pod := range objects {
		if i%10 != 0 {
			pod.Object["status"] = map[string]any{"phase": "Pending"}
		}
	}
	for i := range 200 {
		objects = append(objects, parse(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%03d, namespace: store, uid: u}}`, i)))
	}
	return objects
}

// TestWhatWasNeverNamedIsUnknownWhenAKindBecomesUnreadable asserts that objects without an entry count as Unknown, because they
// may be of the kind that has become unreadable.
func TestWhatWasNeverNamedIsUnknownWhenAKindBecomesUnreadable(t *testing.T) {
	objects := warehouse(t)
	readable := readableOnly(objects, configMaps)
	want := k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 240, Pending: 36, Failed: 4, Unknown: 200}
	for name, limit := range map[string]int{"room for all that can be read": 1 << 20, "no room": 3000} {
		t.Run(name, func(t *testing.T) {
			opts := bundle.Options{ListBudget: 1, HardLimit: 8000}
			before := roundTrip(t, bundle.Build(objects, nil, noon, opts))
			if entryNamed(before, "ConfigMap", "c000") != nil || len(before.Resources) == 0 {
				t.Fatalf("the test's own bundle names %d resources", len(before.Resources))
			}
			opts.Unreadable, opts.HardLimit = []schema.GroupKind{configMaps}, limit
			rebuilt := roundTrip(t, bundle.Build(readable, &before, noon, opts))
			if diff := cmp.Diff(&want, rebuilt.Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			contents := bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: rebuilt})
			if rebuilt.Ready || rebuilt.ResourceCount != 240 || !contents.Truncated || contents.Unlisted.Unknown != 200 {
				t.Errorf("ready %t, resourceCount %d, truncated %t, unlisted %+v", rebuilt.Ready, rebuilt.ResourceCount, contents.Truncated, contents.Unlisted)
			}
			again := bundle.Build(readable, &rebuilt, noon.Add(time.Hour), opts)
			if !bundle.Equal(&rebuilt, &again) {
				t.Errorf("building again gives\n%s\nnot\n%s", encode(t, again), encode(t, rebuilt))
			}
			back, fresh := bundle.Build(objects, &rebuilt, noon, bundle.Options{}), bundle.Build(objects, nil, noon, bundle.Options{})
			if !bundle.Equal(&fresh, &back) {
				t.Errorf("once all can be read it is\n%s\nnot\n%s", encode(t, back), encode(t, fresh))
			}
		})
	}
}

// TestWhatWasNamedMayGoWhileAnotherKindIsUnreadable asserts that an object that had an entry and is not found is removed,
// although another kind cannot be read.
func TestWhatWasNamedMayGoWhileAnotherKindIsUnreadable(t *testing.T) {
	objects := warehouse(t)
	opts := bundle.Options{ListBudget: 1, HardLimit: 16000}
	before := bundle.Build(objects, nil, noon, opts)
	if entryNamed(before, "Pod", "web-000") == nil {
		t.Fatal("the test's own bundle does not name the pod")
	}
	opts.Unreadable = []schema.GroupKind{configMaps}
	after := bundle.Build(readableOnly(objects, configMaps)[1:], &before, noon, opts)
	if want := (k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 239, Pending: 36, Failed: 3, Unknown: 200}); after.ResourceCount != 239 || *after.Summary != want {
		t.Errorf("resourceCount %d, summary %+v, want %+v", after.ResourceCount, *after.Summary, want)
	}
}

// TestForgettingChangesNothingTheNextTime asserts that a bundle without room for all known objects does not change when it is
// built again.
func TestForgettingChangesNothingTheNextTime(t *testing.T) {
	objects := warehouse(t)[:60]
	objects[1].Object["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{"name": "web", "ready": true}}}
	before := bundle.Build(objects, nil, noon, bundle.Options{})
	for limit := 500; limit < 16000; limit += 50 {
		opts := bundle.Options{HardLimit: limit, Unreadable: []schema.GroupKind{configMaps}}
		readable := readableOnly(objects, configMaps)[:2]
		rebuilt := bundle.Build(readable, &before, noon, opts)
		again := bundle.Build(readable, &rebuilt, noon, opts)
		if !bundle.Equal(&rebuilt, &again) || rebuilt.ResourceCount != 22 || rebuilt.Summary.Unknown != 20 {
			t.Errorf("limit %d: building again gives\n%s\nnot\n%s", limit, encode(t, again), encode(t, rebuilt))
		}
	}
}

// TestWhatAnOwnerCountsForIsNotCountedAsUnknown asserts that an object that does not count, because its owner does, still does
// not count when it has no entry.
func TestWhatAnOwnerCountsForIsNotCountedAsUnknown(t *testing.T) {
	objects := crowd(t, 400)
	opts := bundle.Options{HardLimit: 20000}
	before := bundle.Build(objects, nil, noon, opts)
	opts.Unreadable = []schema.GroupKind{pods}
	rebuilt := bundle.Build(readableOnly(objects, pods), &before, noon, opts)
	if rebuilt.Summary.Total != before.Summary.Total || rebuilt.Summary.Unknown != 0 || rebuilt.Ready {
		t.Errorf("summary %+v was %+v, ready %t", rebuilt.Summary, before.Summary, rebuilt.Ready)
	}
}

// TestAKindThatIsNeverReadableTakesNothingFromAWholeBundle asserts that a bundle with all its entries has no objects without an
// entry, whatever its count is.
func TestAKindThatIsNeverReadableTakesNothingFromAWholeBundle(t *testing.T) {
	objects := parseAll(t, standalone(40)...)
	opts := bundle.Options{ListBudget: 1, Unreadable: []schema.GroupKind{services}}
	before := bundle.Build(objects, nil, noon, opts)
	after := bundle.Build(objects[:30], &before, noon, opts)
	if after.ResourceCount != 30 || after.Summary.Total != 30 || !before.Truncated {
		t.Errorf("resourceCount %d, %+v, was truncated %t", after.ResourceCount, after.Summary, before.Truncated)
	}
	before.Truncated, before.ResourceCount = false, 99
	if miscounted := bundle.Build(objects, &before, noon, opts); miscounted.ResourceCount != 40 {
		t.Errorf("resourceCount %d after a wrong one", miscounted.ResourceCount)
	}
}

// TestAnUnreadableBundleIsStableInAnyRoom asserts that objects that cannot be read remain counted with any limit, and that the
// status does not change when it is built again.
func TestAnUnreadableBundleIsStableInAnyRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		opts := bundle.Options{HardLimit: rapid.IntRange(200, 5000).Draw(t, "limit before")}
		before := bundle.Build(objects, nil, noon, opts)
		opts.Unreadable, opts.HardLimit = drawKinds(t), rapid.IntRange(200, 5000).Draw(t, "limit")
		readable := readableOnly(objects, opts.Unreadable...)
		rebuilt := bundle.Build(readable, &before, noon, opts)
		if rebuilt.ResourceCount != before.ResourceCount {
			t.Fatalf("%d resources of %d are left:\n%s", rebuilt.ResourceCount, before.ResourceCount, mustEncode(rebuilt))
		}
		if s := rebuilt.Summary; s.Total != s.Ready+s.Pending+s.Failed+s.Unknown || s.Total > rebuilt.ResourceCount {
			t.Fatalf("summary %+v of %d", s, rebuilt.ResourceCount)
		}
		var stored k8spluginv1alpha1.ResourceBundleStateStatus
		if err := json.Unmarshal(mustEncode(rebuilt), &stored); err != nil {
			t.Fatal(err)
		}
		if again := bundle.Build(readable, &stored, noon.Add(time.Hour), opts); !bundle.Equal(&rebuilt, &again) {
			t.Fatalf("building again gives\n%s\nnot\n%s", mustEncode(again), mustEncode(rebuilt))
		}
		opts.Unreadable = nil
		after, fresh := bundle.Build(objects, &stored, noon, opts), bundle.Build(objects, nil, noon, opts)
		if after.ResourceCount != fresh.ResourceCount || cmp.Diff(after.Summary, fresh.Summary) != "" || after.Ready != fresh.Ready || after.Truncated != fresh.Truncated {
			t.Fatalf("once all can be read it is\n%s\nnot\n%s", mustEncode(after), mustEncode(fresh))
		}
	})
}

// drawKinds draws kinds that cannot be read.
func drawKinds(t *rapid.T) []schema.GroupKind {
	all := []schema.GroupKind{pods, replicaSets, services, {Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "Job"}, {Group: "acme.example", Kind: "Gadget"}}
	return rapid.SliceOfDistinct(rapid.SampledFrom(all), func(gk schema.GroupKind) string { return gk.String() }).Draw(t, "unreadable")
}

// checkUnreadable checks that a bundle still has all entries that it had before, and that objects that cannot be read are
// Unknown.
func checkUnreadable(t *rapid.T, before, rebuilt k8spluginv1alpha1.ResourceBundleStateStatus, unreadable []schema.GroupKind) {
	if rebuilt.ResourceCount != before.ResourceCount || len(rebuilt.Resources) != len(before.Resources) {
		t.Fatalf("%d resources of %d are left:\n%s", rebuilt.ResourceCount, before.ResourceCount, mustEncode(rebuilt))
	}
	for i, was := range before.Resources {
		is := rebuilt.Resources[i]
		if is.Kind != was.Kind || is.Name != was.Name || is.UID != was.UID || cmp.Diff(is.Labels, was.Labels) != "" {
			t.Fatalf("%+v has become %+v", was, is)
		}
		unread := slices.Contains(unreadable, schema.GroupKind{Group: was.Group, Kind: was.Kind})
		if unread != (is.State == "Unknown" && is.Reason == "Forbidden") || unread && cmp.Diff(is.Owner, was.Owner) != "" {
			t.Fatalf("%+v has become %+v", was, is)
		}
	}
}

func TestNothingVanishesBecauseItCannotBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		opts := bundle.Options{AllowedLabels: []string{"app"}}
		before := bundle.Build(objects, nil, noon, opts)
		opts.Unreadable = drawKinds(t)
		readable := readableOnly(objects, opts.Unreadable...)
		rebuilt := bundle.Build(readable, &before, noon.Add(time.Minute), opts)
		checkUnreadable(t, before, rebuilt, opts.Unreadable)
		var stored k8spluginv1alpha1.ResourceBundleStateStatus
		if err := json.Unmarshal(mustEncode(rebuilt), &stored); err != nil {
			t.Fatal(err)
		}
		if again := bundle.Build(readable, &stored, noon.Add(time.Hour), opts); !bundle.Equal(&rebuilt, &again) {
			t.Fatalf("building again gives\n%s\nnot\n%s", mustEncode(again), mustEncode(rebuilt))
		}
		opts.Unreadable = nil
		after, fresh := bundle.Build(objects, &stored, noon, opts), bundle.Build(objects, nil, noon, opts)
		for _, s := range []*k8spluginv1alpha1.ResourceBundleStateStatus{&after, &fresh} {
			for i := range s.Resources {
				s.Resources[i].Since = nil
			}
		}
		if !bundle.Equal(&fresh, &after) {
			t.Fatalf("once all can be read it is\n%s\nnot\n%s", mustEncode(after), mustEncode(fresh))
		}
	})
}
