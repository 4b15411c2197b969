package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// filled returns a bundle of ready Deployments, as a monitor of ours fills it.
func filled(name string, deployments ...string) *k8spluginv1alpha1.ResourceBundleState {
	var objects []*unstructured.Unstructured
	for _, d := range deployments {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "shop", "name": d, "uid": "uid-" + d, "generation": int64(1), "labels": map[string]any{"app": "shop"}},
			"spec":     map[string]any{"replicas": int64(1)},
			"status":   map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1)},
		}})
	}
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "uid", ResourceVersion: "7", Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name},
	}}
	b.Status = bundle.Build(objects, nil, noon, bundle.Options{AllowedLabels: []string{"app"}})
	return b
}

func contentsOf(b *cachedBundle) bundle.Contents {
	return bundle.Contents{Own: b.Own, Observed: b.Observed, Truncated: b.Truncated, Malformed: b.Malformed, Unlisted: b.Unlisted, Results: b.results}
}

func TestCachedBundleHasTheContentsOfTheBundle(t *testing.T) {
	t.Parallel()
	b := filled("17-web", "a", "b", "c")
	if len(b.Status.DeploymentStatuses) == 0 {
		t.Fatal("the bundle has no objects to drop")
	}
	want := bundle.Read("edge01", b)
	s := newStore("edge01")
	if err := s[""].Add(b.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	h := s.get(types.NamespacedName{Namespace: "shop", Name: "17-web"})
	if h == nil || h.UID != "uid" || h.ResourceVersion != "7" || h.App != "web" {
		t.Fatalf("held as %+v", h)
	}
	if diff := cmp.Diff(want, contentsOf(h)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(b.Labels, h.Labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	many := received(t, "edge01", "17-many", 20)
	if diff := cmp.Diff(bundle.Read("edge01", many.DeepCopy()), contentsOf(newCachedBundle("edge01", many, nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
