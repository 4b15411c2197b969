package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/controlplane"
)

// field is a field that the CRD of the older chart does not have.
const field = "resourcesReady"

// olderChart returns a folder with a chart like an older version: its CRD lacks a field.
func olderChart(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "healthscope")
	if err := os.CopyFS(folder, os.DirFS(helm.Chart())); err != nil {
		t.Fatal(err)
	}
	for file, change := range map[string][2]string{
		"Chart.yaml": {"\nversion: ", "\nversion: 0.0.1-before."},
		"files/crd/core.oam.dev_healthscopes.yaml": {" " + field + ":\n", " formerly:\n"},
	} {
		path := filepath.Join(folder, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(data), change[0]) != 1 {
			t.Fatalf("%s: want %q once", file, change[0])
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// create creates an object of a kind whose CRD was just installed. It retries, because Helm does not wait until the API server serves the kind.
func create(t *testing.T, api client.Client, o client.Object) {
	t.Helper()
	var refused error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		refused = api.Create(ctx, o)
		return refused == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, refused)
	}
}

// anUpgradeOfTheCRDs checks that Helm upgrades the CRDs with the release, and that the objects of their kinds remain.
func anUpgradeOfTheCRDs(t *testing.T, plane *controlplane.ControlPlane, api client.Client) {
	must(t, plane, "install", Release, olderChart(t), "--namespace", Namespace, "--create-namespace")
	scope := &unstructured.Unstructured{}
	scope.SetAPIVersion("core.oam.dev/v1alpha2")
	scope.SetKind("HealthScope")
	scope.SetNamespace("default")
	scope.SetName("upgrade")
	create(t, api, scope)
	before := scope.GetUID()
	fields := func() map[string]any {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		if err := api.Get(t.Context(), client.ObjectKey{Name: "healthscopes.core.oam.dev"}, crd); err != nil {
			t.Fatal(err)
		}
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil || len(versions) != 1 {
			t.Fatalf("%d versions: %v", len(versions), err)
		}
		version, _ := versions[0].(map[string]any)
		status, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "status", "properties")
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	if had := fields(); had[field] != nil || had["formerly"] == nil {
		t.Fatal("the older CRD is not what the test wants it to be")
	}
	must(t, plane, "upgrade", Release, helm.Chart(), "--namespace", Namespace)
	if has := fields(); has[field] == nil || has["formerly"] != nil {
		t.Error("the upgrade leaves the older CRD")
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(scope), scope); err != nil || scope.GetUID() != before {
		t.Errorf("the upgrade does not keep the HealthScope: %v", err)
	}
	must(t, plane, "uninstall", Release, "--namespace", Namespace)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(scope), scope); err != nil || scope.GetUID() != before {
		t.Errorf("the uninstallation does not keep the HealthScope: %v", err)
	}
}
