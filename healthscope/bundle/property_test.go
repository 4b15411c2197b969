package bundle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// drawObject draws an object that an API server may hold, or one that is nearly valid.
func drawObject(t *rapid.T) map[string]any {
	kind := rapid.SampledFrom([]string{"v1 Pod", "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "batch/v1 Job", "v1 Service", "v1 ConfigMap", "acme.example/v1 Gadget"}).Draw(t, "kind")
	apiVersion, name, _ := strings.Cut(kind, " ")
	metadata := map[string]any{
		"name":      rapid.SampledFrom([]string{"shop", "shop-6b7f", "shop-6b7f-kx2wz", "shop-0", "db"}).Draw(t, "name"),
		"namespace": rapid.SampledFrom([]string{"store", "back"}).Draw(t, "namespace"),
		"labels":    map[string]any{"app": rapid.SampledFrom([]string{"shop", "db"}).Draw(t, "app")},
	}
	if uid := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "uid"); uid != "" {
		metadata["uid"] = uid
	}
	if rapid.Bool().Draw(t, "owned") {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "apps/v1", "kind": rapid.SampledFrom([]string{"ReplicaSet", "Deployment", "StatefulSet"}).Draw(t, "owner"),
			"name": rapid.SampledFrom([]string{"shop", "shop-6b7f", "gone"}).Draw(t, "owner name"), "controller": true,
		}}
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": name, "metadata": metadata}
	if rapid.Bool().Draw(t, "with spec") {
		object["spec"] = map[string]any{"replicas": rapid.Int64Range(0, 2).Draw(t, "desired"), "selector": map[string]any{"matchLabels": map[string]any{"app": "shop"}}, "note": "<&>"}
	}
	if rapid.Bool().Draw(t, "with status") {
		n := rapid.Int64Range(0, 2)
		object["status"] = map[string]any{
			"replicas": n.Draw(t, "replicas"), "readyReplicas": n.Draw(t, "ready"), "phase": rapid.SampledFrom([]string{"Pending", "Running", "Failed"}).Draw(t, "phase"),
			"containerStatuses": []any{map[string]any{"name": "web", "ready": rapid.Bool().Draw(t, "container"), "lastState": nil}},
		}
	}
	return object
}

// drawObjects draws several objects.
func drawObjects(t *rapid.T) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, rapid.IntRange(0, 8).Draw(t, "objects"))
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: drawObject(t)}
	}
	return objects
}

// drawStatus draws a status that another monitor may write, with invalid values in it.
func drawStatus(t *rapid.T) k8spluginv1alpha1.ResourceBundleStateStatus {
	fields := map[string]any{"ready": false, "resourceCount": 0}
	for _, list := range []string{"podStatuses", "deploymentStatuses", "statefulSetStatuses", "resourceStatuses"} {
		switch rapid.IntRange(0, 4).Draw(t, list) {
		case 0:
			fields[list] = nil
		case 1:
			fields[list] = rapid.SampledFrom([]any{"x", 5, map[string]any{}, []any{}}).Draw(t, "nonsense")
		default:
			entries := make([]any, rapid.IntRange(0, 4).Draw(t, "entries"))
			for i := range entries {
				var entry any = drawObject(t)
				if list == "resourceStatuses" {
					entry = map[string]any{"name": "x", "kind": "Role", "res": base64Of(encode(entry))}
				}
				entries[i] = rapid.SampledFrom([]any{entry, entry, entry, nil, 7, "text"}).Draw(t, "entry")
			}
			fields[list] = entries
		}
	}
	return withStatus(encode(fields)).Status
}

func TestReadGivesTheSameBeforeAndAfterTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &k8spluginv1alpha1.ResourceBundleState{}
		switch rapid.IntRange(0, 2).Draw(t, "monitor") {
		case 0:
			b.Status = bundle.Build(drawObjects(t), nil, noon, bundle.Options{AllowedLabels: []string{"app"}, HardLimit: rapid.IntRange(300, 5000).Draw(t, "limit")})
		default:
			b.Status = drawStatus(t)
		}
		before, entries := bundle.Read("edge", b), b.Status.Resources
		bundle.Trim(b, nil)
		if diff := cmp.Diff(entries, b.Status.Resources, cmpopts.EquateEmpty()); before.Own && diff != "" {
			t.Fatalf("entries of HealthScope's monitor (-before +after):\n%s", diff)
		}
		after := bundle.Read("edge", b)
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("contents (-before +after):\n%s", diff)
		}
		trimmed := b.DeepCopy()
		bundle.Trim(trimmed, nil)
		if diff := cmp.Diff(b, trimmed, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("a second Trim (-first +second):\n%s", diff)
		}
	})
}

// TestBuildIsStable asserts that neither the order of the objects nor time alone makes a difference.
func TestBuildIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		opts := bundle.Options{ListBudget: rapid.IntRange(0, 2000).Draw(t, "budget"), HardLimit: rapid.IntRange(2000, 9000).Draw(t, "limit")}
		first := bundle.Build(objects, nil, noon, opts)
		shuffled := bundle.Build(rapid.Permutation(objects).Draw(t, "order"), nil, noon, opts)
		if a, b := encode(first), encode(shuffled); a != b {
			t.Fatalf("another order gives\n%s\nnot\n%s", b, a)
		}
		stored := roundTrip(first)
		if !bundle.Equal(&first, &stored) || !bundle.Equal(&stored, &first) {
			t.Fatalf("a round trip changes\n%s", encode(first))
		}
		again := bundle.Build(objects, &stored, noon.Add(time.Hour), opts)
		if !bundle.Equal(&stored, &again) {
			t.Fatalf("building again gives\n%s\nnot\n%s", encode(again), encode(stored))
		}
	})
}

func TestEqualSeesEveryDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := bundle.Build(drawObjects(t), nil, noon, bundle.Options{})
		b := bundle.Build(drawObjects(t), nil, noon, bundle.Options{})
		if same := encode(a) == encode(b); bundle.Equal(&a, &b) != same {
			t.Fatalf("equal is %v for\n%s\nand\n%s", !same, encode(a), encode(b))
		}
	})
}

func TestReadNamesEveryResourceOfAnOwnBundle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		status := bundle.Build(drawObjects(t), nil, noon, bundle.Options{})
		contents := read(status)
		if len(contents.Results) != int(status.ResourceCount) || len(contents.Malformed) > 0 || !contents.Observed {
			t.Fatalf("%d results of %d, malformed %q", len(contents.Results), status.ResourceCount, contents.Malformed)
		}
	})
}
