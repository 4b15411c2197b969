package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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

func TestExamplesShowTheColumns(t *testing.T) {
	for name, crd := range crdOf {
		narrow, wide := []string{"NAME"}, []string{"NAME"}
		for _, c := range readCRD(t, crd).Spec.Versions[0].AdditionalPrinterColumns {
			wide = append(wide, c.Name)
			if c.Priority == 0 {
				narrow = append(narrow, c.Name)
			}
		}
		readPage(t, name).headersAre(t, narrow, wide)
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
	bundle.Redact(u)
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
