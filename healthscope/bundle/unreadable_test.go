package bundle_test

import (
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

func TestObjectsThatCannotBeReadStayUnknown(t *testing.T) {
	cases := map[string]struct {
		unreadable []schema.GroupKind
		summary    k8spluginv1alpha1.ResourceCounts
		unknown    []string
		ready      bool
	}{
		"none":               {summary: k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 4, Ready: 4}, ready: true},
		"one that counts":    {unreadable: []schema.GroupKind{services}, summary: k8spluginv1alpha1.ResourceCounts{State: "Unknown", Total: 4, Ready: 3, Unknown: 1}, unknown: []string{"Service/shop"}},
		"those that explain": {unreadable: []schema.GroupKind{pods, replicaSets}, summary: k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 4, Ready: 4}, unknown: []string{"Pod/shop-6b7f-aaaaa", "Pod/shop-6b7f-bbbbb", "ReplicaSet/shop-6b7f"}},
		"one that was never": {unreadable: []schema.GroupKind{{Group: "batch", Kind: "Job"}}, summary: k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 4, Ready: 4}, ready: true},
		"of another group":   {unreadable: []schema.GroupKind{{Group: "acme.example", Kind: "Service"}}, summary: k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 4, Ready: 4}, ready: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := shop()
			must(unstructured.SetNestedField(objects[0].Object, int64(2), "status", "readyReplicas"))
			must(unstructured.SetNestedField(objects[0].Object, int64(2), "status", "availableReplicas"))
			previous := roundTrip(bundle.Build(objects, nil, noon, bundle.Options{}))
			status := bundle.Build(readableOnly(objects, tc.unreadable...), &previous, noon.Add(time.Hour), bundle.Options{Unreadable: tc.unreadable})
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
			if status.ResourceCount != 7 || len(status.Resources) != 7 || status.Ready != tc.ready || status.Truncated != (len(tc.unknown) > 0) {
				t.Errorf("%d of %d resources, ready %t, truncated %t", len(status.Resources), status.ResourceCount, status.Ready, status.Truncated)
			}
		})
	}
}

func TestWhatStaysOfAnObjectThatCannotBeRead(t *testing.T) {
	opts := bundle.Options{AllowedLabels: []string{"app", "team"}}
	objects := shop()
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
			t.Errorf("what the caller remembers of the pods makes a difference:\n%s\nnot\n%s", encode(same), encode(status))
		}
		first := bundle.Build(objects, nil, later, opts)
		if got := entryNamed(first, "Pod", "shop-6b7f-aaaaa"); got == nil || got.State != "Unknown" {
			t.Errorf("without a past the pod is %+v", got)
		}
	})
}

// warehouse returns 40 pods, four of them failed and the others pending, and 200 ConfigMaps.
func warehouse() []*unstructured.Unstructured {
	objects := standalone(40)
	for i, pod := range objects {
		if i%10 != 0 {
			pod.Object["status"] = map[string]any{"phase": "Pending"}
		}
	}
	for i := range 200 {
		objects = append(objects, parse(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%03d, namespace: store, uid: u}}`, i)))
	}
	return objects
}

// TestObjectsWithoutAnEntryStayCounted asserts that objects that a truncated bundle counts and does not name stay counted while a
// kind cannot be read, because they may be of that kind. What was named and is not found has gone.
func TestObjectsWithoutAnEntryStayCounted(t *testing.T) {
	stock, shops := warehouse(), crowd(400)
	cases := map[string]struct {
		objects, readable []*unstructured.Unstructured
		before, after     bundle.Options
		want              k8spluginv1alpha1.ResourceCounts
		count             int32
	}{
		"Unknown, with room for all that can be read": {
			stock, readableOnly(stock, configMaps), bundle.Options{ListBudget: 1, HardLimit: 8000}, bundle.Options{Unreadable: []schema.GroupKind{configMaps}},
			k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 240, Pending: 36, Failed: 4, Unknown: 200}, 240,
		},
		"Unknown, without room": {
			stock, readableOnly(stock, configMaps), bundle.Options{ListBudget: 1, HardLimit: 8000}, bundle.Options{Unreadable: []schema.GroupKind{configMaps}, HardLimit: 3000},
			k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 240, Pending: 36, Failed: 4, Unknown: 200}, 240,
		},
		"beside one that was named and has gone": {
			stock, readableOnly(stock, configMaps)[1:], bundle.Options{ListBudget: 1, HardLimit: 16000}, bundle.Options{Unreadable: []schema.GroupKind{configMaps}, HardLimit: 16000},
			k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 239, Pending: 36, Failed: 3, Unknown: 200}, 239,
		},
		"not as Unknown, when their owner counts for them": {
			shops, readableOnly(shops, pods), bundle.Options{HardLimit: 20000}, bundle.Options{HardLimit: 20000, Unreadable: []schema.GroupKind{pods}},
			k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 2, Ready: 2}, 403,
		},
		"and none is made up, when the bundle only lacks lists": {
			standalone(40), standalone(30), bundle.Options{ListBudget: 1}, bundle.Options{ListBudget: 1, Unreadable: []schema.GroupKind{services}},
			k8spluginv1alpha1.ResourceCounts{State: "Failed", Total: 30, Ready: 27, Failed: 3}, 30,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := roundTrip(bundle.Build(tc.objects, nil, noon, tc.before))
			rebuilt := roundTrip(bundle.Build(tc.readable, &before, noon, tc.after))
			if diff := cmp.Diff(&tc.want, rebuilt.Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if rebuilt.Ready || rebuilt.ResourceCount != tc.count {
				t.Errorf("ready %t, resourceCount %d", rebuilt.Ready, rebuilt.ResourceCount)
			}
			checkCounted(t, rebuilt)
			if again := bundle.Build(tc.readable, &rebuilt, noon.Add(time.Hour), tc.after); !bundle.Equal(&rebuilt, &again) {
				t.Errorf("building again gives\n%s\nnot\n%s", encode(again), encode(rebuilt))
			}
			back, fresh := bundle.Build(tc.objects, &rebuilt, noon, bundle.Options{}), bundle.Build(tc.objects, nil, noon, bundle.Options{})
			if !bundle.Equal(&fresh, &back) {
				t.Errorf("once all can be read it is\n%s\nnot\n%s", encode(back), encode(fresh))
			}
		})
	}
}

// TestForgettingChangesNothingTheNextTime asserts that a bundle without room for all known objects does not change when it is
// built again.
func TestForgettingChangesNothingTheNextTime(t *testing.T) {
	objects := warehouse()[:60]
	objects[1].Object["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{"name": "web", "ready": true}}}
	before := bundle.Build(objects, nil, noon, bundle.Options{})
	for limit := 500; limit < 16000; limit += 50 {
		opts := bundle.Options{HardLimit: limit, Unreadable: []schema.GroupKind{configMaps}}
		readable := readableOnly(objects, configMaps)[:2]
		rebuilt := bundle.Build(readable, &before, noon, opts)
		again := bundle.Build(readable, &rebuilt, noon, opts)
		if !bundle.Equal(&rebuilt, &again) || rebuilt.ResourceCount != 22 || rebuilt.Summary.Unknown != 20 {
			t.Errorf("limit %d: building again gives\n%s\nnot\n%s", limit, encode(again), encode(rebuilt))
		}
	}
}

// TestAWrongCountOfAWholeBundleIsIgnored asserts that a bundle that is not truncated has no objects without an entry.
func TestAWrongCountOfAWholeBundleIsIgnored(t *testing.T) {
	opts := bundle.Options{Unreadable: []schema.GroupKind{services}}
	before := bundle.Build(standalone(40), nil, noon, opts)
	before.ResourceCount = 99
	if after := bundle.Build(standalone(40), &before, noon, opts); after.ResourceCount != 40 {
		t.Errorf("resourceCount %d after a wrong one", after.ResourceCount)
	}
}

// drawKinds draws kinds that cannot be read.
func drawKinds(t *rapid.T) []schema.GroupKind {
	all := []schema.GroupKind{pods, replicaSets, services, {Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "Job"}, {Group: "acme.example", Kind: "Gadget"}}
	return rapid.SliceOfDistinct(rapid.SampledFrom(all), func(gk schema.GroupKind) string { return gk.String() }).Draw(t, "unreadable")
}

// rebuild builds a bundle without the objects of Unreadable kinds, and then of all objects, which is the same as a fresh one. It fails
// the test when objects are not counted meanwhile, when building again makes a difference, or when something remains in the end.
func rebuild(t *rapid.T, objects []*unstructured.Unstructured, before *k8spluginv1alpha1.ResourceBundleStateStatus, opts bundle.Options) (rebuilt, after, fresh k8spluginv1alpha1.ResourceBundleStateStatus) {
	readable := readableOnly(objects, opts.Unreadable...)
	rebuilt = bundle.Build(readable, before, noon.Add(time.Minute), opts)
	if s := rebuilt.Summary; rebuilt.ResourceCount != before.ResourceCount || s.Total != s.Ready+s.Pending+s.Failed+s.Unknown || s.Total > rebuilt.ResourceCount {
		t.Fatalf("%d resources of %d are left, summary %+v:\n%s", rebuilt.ResourceCount, before.ResourceCount, s, encode(rebuilt))
	}
	stored := roundTrip(rebuilt)
	if again := bundle.Build(readable, &stored, noon.Add(time.Hour), opts); !bundle.Equal(&rebuilt, &again) {
		t.Fatalf("building again gives\n%s\nnot\n%s", encode(again), encode(rebuilt))
	}
	opts.Unreadable = nil
	after, fresh = bundle.Build(objects, &stored, noon, opts), bundle.Build(objects, nil, noon, opts)
	if after.ResourceCount != fresh.ResourceCount || *after.Summary != *fresh.Summary || after.Ready != fresh.Ready || after.Truncated != fresh.Truncated {
		t.Fatalf("once all can be read it is\n%s\nnot\n%s", encode(after), encode(fresh))
	}
	return rebuilt, after, fresh
}

func TestUnreadableObjectsStayCountedInAnyRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		before := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: rapid.IntRange(200, 5000).Draw(t, "limit before")})
		rebuild(t, objects, &before, bundle.Options{Unreadable: drawKinds(t), HardLimit: rapid.IntRange(200, 5000).Draw(t, "limit")})
	})
}

// TestNothingVanishesBecauseItCannotBeRead asserts that a bundle with room still has all entries that it had before, and that only
// objects that cannot be read are Unknown.
func TestNothingVanishesBecauseItCannotBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		opts := bundle.Options{AllowedLabels: []string{"app"}}
		before := bundle.Build(objects, nil, noon, opts)
		opts.Unreadable = drawKinds(t)
		rebuilt, after, fresh := rebuild(t, objects, &before, opts)
		if len(rebuilt.Resources) != len(before.Resources) {
			t.Fatalf("%d entries of %d are left:\n%s", len(rebuilt.Resources), len(before.Resources), encode(rebuilt))
		}
		for i, was := range before.Resources {
			is := rebuilt.Resources[i]
			unread := slices.Contains(opts.Unreadable, schema.GroupKind{Group: was.Group, Kind: was.Kind})
			if is.Kind != was.Kind || is.Name != was.Name || is.UID != was.UID || cmp.Diff(is.Labels, was.Labels) != "" ||
				unread != (is.State == "Unknown" && is.Reason == "Forbidden") || unread && cmp.Diff(is.Owner, was.Owner) != "" {
				t.Fatalf("%+v has become %+v", was, is)
			}
		}
		for _, s := range []*k8spluginv1alpha1.ResourceBundleStateStatus{&after, &fresh} {
			for i := range s.Resources {
				s.Resources[i].Since = nil
			}
		}
		if !bundle.Equal(&fresh, &after) {
			t.Fatalf("once all can be read it is\n%s\nnot\n%s", encode(after), encode(fresh))
		}
	})
}
