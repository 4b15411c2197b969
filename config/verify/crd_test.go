package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
)

// These are the files of the CRDs.
const (
	healthScopeCRD         = "core.oam.dev_healthscopes.yaml"
	resourceBundleStateCRD = "k8splugin.io_resourcebundlestates.yaml"
)

// readCRD reads a CRD as it is installed.
func readCRD(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "crd", name))
	if err != nil {
		t.Fatalf("cannot read a CRD: %v", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatalf("cannot read CRD %q: %v", name, err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("CRD %q has %d versions; these tests know one", name, len(crd.Spec.Versions))
	}
	return &crd
}

// schemas returns the schemas of all fields of spec and status, by path. The path of a list's items ends in [].
func schemas(crd *apiextensionsv1.CustomResourceDefinition) map[string]apiextensionsv1.JSONSchemaProps {
	all := map[string]apiextensionsv1.JSONSchemaProps{}
	var walk func(string, apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		all[path] = s
		for name, below := range s.Properties {
			walk(path+"."+name, below)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(path+"[]", *s.Items.Schema)
		}
	}
	for _, part := range []string{"spec", "status"} {
		walk(part, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part])
	}
	return all
}

func TestCRDFieldsAreDescribed(t *testing.T) {
	for _, name := range []string{healthScopeCRD, resourceBundleStateCRD} {
		for path, s := range schemas(readCRD(t, name)) {
			if s.Description == "" && (s.Type != "string" || !strings.HasSuffix(path, "[]")) {
				t.Errorf("%s: %s has no description: kubectl explain would say nothing", name, path)
			}
		}
	}
}

// unbounded are the parts of a spec that accept strings and lists of any length. OAM and KubeVela set no bounds for these
// fields, and selectors are types of Kubernetes. The API server must accept manifests that were written for OAM or KubeVela.
var unbounded = []string{"spec.workloadRefs[].", "spec.apps[].workloadRefs[].", "spec.appReferences[].", "spec.apps[].selector.", "spec.apps[].workloadSelector.match", "spec.apps[].clusters.selector.", "spec.clusters.selector.", "spec.selector."}

func TestCRDStringsThatPeopleWriteAreBounded(t *testing.T) {
	for _, name := range []string{healthScopeCRD, resourceBundleStateCRD} {
		for path, s := range schemas(readCRD(t, name)) {
			if s.Type != "string" || !strings.HasPrefix(path, "spec.") || hasPrefix(path, unbounded) {
				continue
			}
			if s.MaxLength == nil && len(s.Enum) == 0 {
				t.Errorf("%s: %s is a string of any length: add a MaxLength to the type", name, path)
			}
		}
	}
}

func TestCRDListsSayHowTheyMerge(t *testing.T) {
	for _, name := range []string{healthScopeCRD, resourceBundleStateCRD} {
		for path, s := range schemas(readCRD(t, name)) {
			if s.Type != "array" {
				continue
			}
			if s.XListType == nil {
				t.Errorf("%s: %s has no listType: server-side apply would replace it as a whole without saying so", name, path)
			}
			if strings.HasPrefix(path, "spec.") && s.MaxItems == nil && !hasPrefix(path, unbounded) {
				t.Errorf("%s: %s may have any number of items: add a MaxItems to the type", name, path)
			}
		}
	}
}

// TestCRDStatesAreThoseOfTheProgram asserts that the API server accepts every state that the program writes, and no other value.
func TestCRDStatesAreThoseOfTheProgram(t *testing.T) {
	var want []string
	for _, state := range healthscope.States() {
		want = append(want, strconv.Quote(string(state)))
	}
	slices.Sort(want)
	all := schemas(readCRD(t, healthScopeCRD))
	for _, path := range []string{"status.summary.state", "status.apps[].state", "status.apps[].clusters[].state", "status.culprits[].state"} {
		var got []string
		for _, word := range all[path].Enum {
			got = append(got, string(word.Raw))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s may be %v; the program's states are %v", healthScopeCRD, path, got, want)
		}
	}
}

func hasPrefix(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
}

func TestCRDColumnsShowFieldsThatExist(t *testing.T) {
	for _, name := range []string{healthScopeCRD, resourceBundleStateCRD} {
		crd := readCRD(t, name)
		fields := schemas(crd)
		for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			path := strings.TrimPrefix(c.JSONPath, ".")
			if path == "metadata.creationTimestamp" {
				continue
			}
			if s, ok := fields[path]; !ok || s.Type != c.Type {
				t.Errorf("%s: column %s shows %s as %s, which is %q in the schema", name, c.Name, path, c.Type, s.Type)
			}
		}
	}
}
