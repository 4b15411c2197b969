package support

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ownFields are the fields, by CRD, that only HealthScope's CRDs have. A CRD of the same name from another owner drops them.
var ownFields = map[string][]string{
	"healthscopes.core.oam.dev":         {"spec.apps", "spec.expectedClusters", "spec.rollup", "status.apps", "status.culprits", "status.health", "status.inventory", "status.summary"},
	"resourcebundlestates.k8splugin.io": {"status.resources", "status.summary", "status.truncated"},
}

// addCRDs adds a summary of the CRDs: their versions, and which of ownFields each version drops.
func (g *gatherer) addCRDs(ctx context.Context) {
	const name = "crds.yaml"
	var text strings.Builder
	for _, crd := range []string{"healthscopes.core.oam.dev", "resourcebundlestates.k8splugin.io"} {
		o, err := g.objects.Resource(crds).Get(ctx, crd, metav1.GetOptions{})
		if err != nil {
			g.archive.problem("CRD "+crd, err)
			continue
		}
		g.appendYAML(&text, name, crdSummary(o, ownFields[crd]))
	}
	g.archive.add(name, text.String())
}

// crdSummary returns the metadata of a CRD, its conditions and its versions, and which fields each version drops.
func crdSummary(crd *unstructured.Unstructured, fields []string) *unstructured.Unstructured {
	redactMetadata(crd)
	var versions []any
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range list {
		version, _ := item.(map[string]any)
		root, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		drops := []any{}
		for _, field := range fields {
			if !preservesField(root, strings.Split(field, ".")) {
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

// preservesField reports whether a schema preserves the field at a path: it has a property for the field, or preserves unknown fields.
func preservesField(node map[string]any, path []string) bool {
	if preserveUnknown, _ := node["x-kubernetes-preserve-unknown-fields"].(bool); preserveUnknown || len(path) == 0 {
		return true
	}
	properties, _ := node["properties"].(map[string]any)
	child, ok := properties[path[0]].(map[string]any)
	return ok && preservesField(child, path[1:])
}
