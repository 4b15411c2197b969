package chart

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// kustomize returns the objects of a folder of config.
func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	programs, err := assets.Locate()
	if err == nil {
		err = programs.Require(assets.Kubectl)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), programs.Path(assets.Kubectl), "kustomize", filepath.Join(root, "config", folder))
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("cannot render config/%s: %v\n%s", folder, err, problems.String())
	}
	objects, err := Objects(&out)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// withoutHelm takes from an object what only Helm knows.
func withoutHelm(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, "helm.sh/chart")
	delete(labels, "app.kubernetes.io/managed-by")
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "helm.sh/") })
	o.SetLabels(labels)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	return o
}

// TestKustomizationsMakeWhatTheChartMakes, besides the namespace of the programs, which "helm install --create-namespace" makes.
func TestKustomizationsMakeWhatTheChartMakes(t *testing.T) {
	for folder, values := range map[string]string{"default": "", "hub": "monitor: {enabled: false}", "member": "controller: {enabled: false}"} {
		want, got := map[string]any{}, map[string]any{}
		for _, o := range render(t, values) {
			want[names([]*unstructured.Unstructured{o})[0]] = withoutHelm(o).Object
		}
		for _, o := range kustomize(t, folder) {
			got[names([]*unstructured.Unstructured{o})[0]] = o.Object
		}
		if _, ok := got["Namespace//"+Namespace]; !ok {
			t.Errorf("config/%s does not make namespace %s", folder, Namespace)
		}
		delete(got, "Namespace//"+Namespace)
		if len(want) < 8 {
			t.Errorf("config/%s: the chart makes %d objects only", folder, len(want))
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if diff := cmp.Diff(want[name], got[name]); diff != "" {
				t.Errorf("config/%s, %s (-chart +kustomization):\n%s", folder, name, diff)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("config/%s makes %s, and the chart does not", folder, name)
		}
	}
}
