package support

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ourFields are fields that only our CRDs have; another owner's CRD of the same name drops them.
var ourFields = map[string][]string{
	"healthscopes.core.oam.dev":         {"spec.apps", "spec.expectedClusters", "spec.rollup", "status.apps", "status.culprits", "status.health", "status.inventory", "status.summary"},
	"resourcebundlestates.k8splugin.io": {"status.resources", "status.summary", "status.truncated"},
}

// definitions adds what the CRDs are, by version, and which of our fields they drop.
func (g *gatherer) definitions(ctx context.Context) {
	const name = "crds.yaml"
	var text strings.Builder
	for _, crd := range []string{"healthscopes.core.oam.dev", "resourcebundlestates.k8splugin.io"} {
		o, err := g.objects.Resource(customResourceDefinitions).Get(ctx, crd, metav1.GetOptions{})
		if err != nil {
			g.archive.problem("CRD "+crd, err)
			continue
		}
		g.encode(&text, name, definition(o, ourFields[crd]))
	}
	g.archive.add(name, text.String())
}

// definition returns what is of use of a CRD: who made it, its versions, its conditions, and which fields each version drops.
func definition(crd *unstructured.Unstructured, fields []string) *unstructured.Unstructured {
	tidyMeta(crd)
	var versions []any
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range list {
		version, _ := item.(map[string]any)
		root, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		drops := []any{}
		for _, field := range fields {
			if !keeps(root, strings.Split(field, ".")) {
				drops = append(drops, field)
			}
		}
		versions = append(versions, map[string]any{"name": version["name"], "served": version["served"], "storage": version["storage"], "drops": drops})
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": crd.Object["kind"], "apiVersion": crd.Object["apiVersion"], "metadata": crd.Object["metadata"], "versions": versions, "conditions": conditions,
	}}
}

// keeps reports whether a schema keeps what is at a path: it has a property for it, or preserves unknown fields.
func keeps(node map[string]any, path []string) bool {
	if unknown, _ := node["x-kubernetes-preserve-unknown-fields"].(bool); unknown || len(path) == 0 {
		return true
	}
	properties, _ := node["properties"].(map[string]any)
	below, ok := properties[path[0]].(map[string]any)
	return ok && keeps(below, path[1:])
}
