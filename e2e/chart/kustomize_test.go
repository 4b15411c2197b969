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
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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

// withoutHelm returns an object without the fields that only Helm sets.
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

// TestKustomizationsMakeWhatTheChartMakes compares the objects of both. Only the kustomizations create the namespace of the programs; for the
// chart, "helm install --create-namespace" does.
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

// rightsOf returns the rights of the roles whose names end with one of the given ones, each as "verb group/resource".
func rightsOf(t *testing.T, objects []*unstructured.Unstructured, suffixes ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, o := range objects {
		if kind := o.GetKind(); kind != "Role" && kind != "ClusterRole" || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(o.GetName(), s) }) {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[verb+" "+group+"/"+resource] = true
					}
				}
			}
		}
	}
	return all
}

// TestKustomizeOptionsGiveTheRightsOfTheChart checks that the options give the chart's rights in the hub, and that a hub gets the same rights in its members.
func TestKustomizeOptionsGiveTheRightsOfTheChart(t *testing.T) {
	of := render(t, "{probeNamespaces: [shop], deployNamespaces: [shop], config: {oam: {applicationConfigurations: true, labelServices: true, writeApplicationHealth: true}}}")
	workloads := rightsOf(t, of, "-controller")
	maps.DeleteFunc(workloads, func(right string, _ bool) bool {
		return !strings.Contains(right, " apps/") && !strings.Contains(right, " batch/") && right != "list /pods"
	})
	withWorkloads := rightsOf(t, of, "-controller-oam")
	maps.Copy(withWorkloads, workloads)
	for folder, want := range map[string]map[string]bool{
		"rbac/oam/applicationconfigurations": rightsOf(t, of, "-applicationconfigurations"),
		"rbac/oam/applicationhealth":         rightsOf(t, of, "-applicationhealth"),
		"rbac/oam/labelservices":             rightsOf(t, of, "-labelservices"),
		"rbac/probes":                        rightsOf(t, of, "-probes"),
		"rbac/member/probes":                 rightsOf(t, of, "-probes"),
		"rbac/deploy":                        rightsOf(t, of, "-deploy"),
		"rbac/member/deploy":                 rightsOf(t, of, "-deploy"),
		"rbac/member/oam":                    withWorkloads,
	} {
		objects := kustomize(t, folder)
		if diff := cmp.Diff(want, rightsOf(t, objects, "")); diff != "" || len(want) == 0 {
			t.Errorf("config/%s (-chart +kustomization):\n%s", folder, diff)
		}
		for _, o := range objects {
			bound, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			if bound == "" && len(objects) > 1 {
				bound = o.GetName()
			}
			labels := o.GetLabels()
			aggregated := labels["healthscope.core.oam.dev/aggregate-to-controller"] == "true" || labels["healthscope.core.oam.dev/aggregate-to-deploy"] == "true"
			if bound != o.GetName() && !aggregated {
				t.Errorf("config/%s: %s %q gives no right to an account", folder, o.GetKind(), o.GetName())
			}
		}
	}
}
