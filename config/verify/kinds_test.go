package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// The pages of our kinds.
const (
	healthScopePage         = "healthscope.md"
	resourceBundleStatePage = "resourcebundlestate.md"
)

// crdOf are the CRDs of the pages.
var crdOf = map[string]string{healthScopePage: healthScopeCRD, resourceBundleStatePage: resourceBundleStateCRD}

// elsewhere are objects whose fields are described elsewhere: at another path, where the schema must be the same, or by Kubernetes.
var elsewhere = map[string]string{
	"spec.apps[].workloadRefs[]":                     "spec.workloadRefs[]",
	"spec.appReferences[].compReferences[].workload": "spec.workloadRefs[]",
	"spec.appReferences[].compReferences[].traits[]": "spec.workloadRefs[]",
	"status.healthConditions[].targetWorkload":       "spec.workloadRefs[]",
	"status.appHealthConditions[].components[]":      "status.healthConditions[]",
	"status.conditions[]":                            "",
	"spec.apps[].selector":                           "",
	"spec.apps[].clusters.selector":                  "",
	"spec.clusters.selector":                         "",
	"spec.selector":                                  "",
}

func TestFieldsOfKindsAreDocumented(t *testing.T) {
	for name, crd := range crdOf {
		p := readPage(t, name)
		rows := p.rows(t, "field")
		all := schemas(readCRD(t, crd))
		var want []string
		for path, s := range all {
			if path == "spec" || path == "status" || strings.HasSuffix(path, "[]") || isElsewhere(path) {
				continue
			}
			want = append(want, path)
			for _, r := range rows {
				if code(r["field"]) == path && r["type"] != kindOf(s) {
					t.Errorf("%s: the type of %s is %s; the row says %s", p.name, path, kindOf(s), r["type"])
				}
			}
		}
		slices.Sort(want)
		p.documents(t, "field", want, firstCodes(rows, "field"))
	}
}

func isElsewhere(path string) bool {
	for object := range elsewhere {
		if strings.HasPrefix(path, object+".") {
			return true
		}
	}
	return false
}

// kindOf names the type of a field for people.
func kindOf(s apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Type == "array" && s.Items.Schema.Type == "object":
		return "list of objects"
	case s.Type == "array":
		return "list of " + s.Items.Schema.Type + "s"
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map of " + s.AdditionalProperties.Schema.Type + "s"
	case s.Type == "string" && s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

func TestFieldsDescribedElsewhereAreTheSame(t *testing.T) {
	all := schemas(readCRD(t, healthScopeCRD))
	maps.Copy(all, map[string]apiextensionsv1.JSONSchemaProps{"spec.selector": schemas(readCRD(t, resourceBundleStateCRD))["spec.selector"]})
	for path, other := range elsewhere {
		s, ok := all[path]
		if !ok {
			t.Errorf("there is no %s any more", path)
		}
		if other == "" {
			continue
		}
		if diff := cmp.Diff(all[other].Properties, s.Properties); diff != "" {
			t.Errorf("%s is described at %s and is not the same (-there +here):\n%s", path, other, diff)
		}
	}
}

func TestBoundsOfStatusAreDocumented(t *testing.T) {
	p := readPage(t, healthScopePage)
	for path, most := range map[string]int{
		"status.healthConditions": corev1alpha2.MaxHealthConditions,
		"status.culprits":         corev1alpha2.MaxCulprits,
		"status.apps[].clusters":  corev1alpha2.MaxAppClusters,
	} {
		for _, r := range p.rows(t, "field") {
			if code(r["field"]) == path && !strings.Contains(r["meaning"], "at most "+strconv.Itoa(most)) {
				t.Errorf("%s: the row of %s must say: at most %d", p.name, path, most)
			}
		}
	}
}

func TestColumnsAreDocumented(t *testing.T) {
	for name, crd := range crdOf {
		p := readPage(t, name)
		rows := p.rows(t, "column")
		want, wide := []string{"NAME"}, []string{"NAME"}
		for _, c := range readCRD(t, crd).Spec.Versions[0].AdditionalPrinterColumns {
			wide = append(wide, c.Name)
			if c.Priority == 0 {
				want = append(want, c.Name)
			}
			for _, r := range rows {
				path := strings.TrimPrefix(c.JSONPath, ".")
				if code(r["column"]) == c.Name && code(r["what it shows"]) != path && path != "metadata.creationTimestamp" {
					t.Errorf("%s: column %s shows %s; the row says %s", p.name, c.Name, path, r["what it shows"])
				}
			}
		}
		if diff := cmp.Diff(wide, firstCodes(rows, "column")); diff != "" {
			t.Errorf("%s: columns (-shown +documented):\n%s", p.name, diff)
		}
		p.headersAre(t, want, wide)
	}
}

// headersAre compares the headers that kubectl get prints in the examples of a page.
func (p page) headersAre(t *testing.T, narrow, wide []string) {
	t.Helper()
	shown := 0
	for _, block := range p.fences("console") {
		lines := strings.Split(block, "\n")
		for i, l := range lines[:len(lines)-1] {
			command, ok := strings.CutPrefix(l, "$ kubectl get ")
			if !ok || strings.HasPrefix(command, "events") || strings.Contains(command, "-o jsonpath") || strings.Contains(command, "-o yaml") {
				continue
			}
			want := narrow
			if strings.Contains(command, "-o wide") {
				want = wide
			}
			shown++
			if diff := cmp.Diff(want, strings.Fields(lines[i+1])); diff != "" {
				t.Errorf("%s: header below %q (-printed +documented):\n%s", p.name, l, diff)
			}
		}
	}
	if shown == 0 {
		t.Errorf("%s: show what kubectl get prints", p.name)
	}
}

func TestExamplesAreTheSamples(t *testing.T) {
	for name, sample := range map[string]string{healthScopePage: "3-healthscope.yaml", resourceBundleStatePage: "2-bundles.yaml"} {
		p := readPage(t, name)
		data, err := os.ReadFile(filepath.Join("..", "samples", "vfw", sample))
		if err != nil {
			t.Fatal(err)
		}
		example := object(t, p.fences("yaml")[0])
		same := func(document string) bool { return cmp.Equal(object(t, document), example) }
		if !slices.ContainsFunc(documentsOf(string(data)), same) {
			t.Errorf("%s: the first example is not in config/samples/vfw/%s any more", p.name, sample)
		}
	}
}

// object decodes an object.
func object(t *testing.T, document string) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(document), &decoded); err != nil {
		t.Fatalf("cannot decode an example: %v", err)
	}
	return decoded
}

func TestKindsOfBundlesAreDocumented(t *testing.T) {
	p := readPage(t, resourceBundleStatePage)
	rows := p.section(t, "What goes in").rows(t, "kind")
	var want []string
	for _, kind := range monitor.DefaultKinds() {
		name := strings.TrimSuffix(kind.Kind+"."+kind.Group, ".")
		want = append(want, name)
		list := listOf(t, map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "x", "namespace": "default"},
		})
		for _, r := range rows {
			if code(r["kind"]) == name && code(r["list"]) != list {
				t.Errorf("%s: %s is in the list %s; the row says %s", p.name, name, list, r["list"])
			}
		}
	}
	p.documents(t, "kind", want, firstCodes(rows, "kind"))
}

// listOf returns the list of a bundle that an object goes into.
func listOf(t *testing.T, content map[string]any) string {
	t.Helper()
	status := bundle.Build([]*unstructured.Unstructured{{Object: content}}, nil, epoch, bundle.Options{})
	for name, list := range status.Lists() {
		if len(*list) > 0 {
			return name
		}
	}
	t.Errorf("%s is in none of the lists", content["kind"])
	return ""
}

func TestWhatIsNeverCopiedIsDocumented(t *testing.T) {
	p := readPage(t, resourceBundleStatePage).section(t, "What goes in")
	files := sources(t, "healthscope/bundle")
	for _, e := range literal(t, files, "copies") {
		if annotation, ok := text(e); !ok || !slices.Contains(codes(p.text), annotation) {
			t.Errorf("%s: name the annotation %q among what is never copied", p.name, annotation)
		}
	}
	whole := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "c2VjcmV0"}, "stringData": map[string]any{"password": "secret"},
		"metadata": map[string]any{"name": "x", "managedFields": []any{map[string]any{"manager": "secret"}}, "annotations": map[string]any{}},
		"spec":     map[string]any{"env": []any{map[string]any{"name": "PASSWORD", "value": "secret"}}, "httpHeaders": []any{map[string]any{"name": "X", "value": "secret"}}},
	}
	u := &unstructured.Unstructured{Object: whole}
	annotations := map[string]string{}
	for _, annotation := range codes(p.text) {
		if strings.Contains(annotation, "/") {
			annotations[annotation] = "secret"
		}
	}
	u.SetAnnotations(annotations)
	bundle.Strip(u)
	if left, err := json.Marshal(u.Object); err != nil || strings.Contains(string(left), "secret") || strings.Contains(string(left), "c2Vj") {
		t.Errorf("%s says that these are never copied; bundles hold %s (%v)", p.name, left, err)
	}
}

func TestSizeOfBundlesIsDocumented(t *testing.T) {
	p := readPage(t, resourceBundleStatePage).section(t, "What goes in")
	for _, size := range []string{
		fmt.Sprintf("The lists take at most %d KiB together", bundle.DefaultListBudget>>10),
		fmt.Sprintf("the whole status at most %d MiB", bundle.DefaultHardLimit>>20),
	} {
		if !strings.Contains(p.text, size) {
			t.Errorf("%s must say: %s", p.name, size)
		}
	}
}
