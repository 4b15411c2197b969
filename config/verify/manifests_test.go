package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/rsync"
)

// documentsOf splits a YAML stream into its documents. It omits documents that contain only comments.
func documentsOf(stream string) []string {
	var documents []string
	for document := range strings.SplitSeq("\n"+stream, "\n---") {
		holds := func(l string) bool { l = strings.TrimSpace(l); return l != "" && !strings.HasPrefix(l, "#") }
		if slices.ContainsFunc(strings.Split(document, "\n"), holds) {
			documents = append(documents, document)
		}
	}
	return documents
}

// manifests decodes YAML strictly.
type manifests struct {
	decoder runtime.Decoder
	// crds are our CRDs by kind. Their Go types decode leniently, so documents are also checked against the schemas.
	crds map[string]*apiextensionsv1.CustomResourceDefinition
}

func newManifests(t *testing.T) manifests {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1alpha2.AddToScheme(scheme), k8spluginv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	m := manifests{
		decoder: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true}),
		crds:    map[string]*apiextensionsv1.CustomResourceDefinition{},
	}
	for _, name := range []string{healthScopeCRD, resourceBundleStateCRD} {
		crd := readCRD(t, name)
		m.crds[crd.Spec.Names.Kind] = crd
	}
	return m
}

// check returns the first error in a YAML document.
func (m manifests) check(document string) error {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
		return err
	}
	if meta.Kind == configv1alpha1.Kind && meta.APIVersion == configv1alpha1.APIVersion {
		_, err := app.ParseConfig([]byte(document))
		return err
	}
	decoded, _, err := m.decoder.Decode([]byte(document), nil, nil)
	if err != nil {
		return err
	}
	if b, ok := decoded.(*k8spluginv1alpha1.ResourceBundleState); ok && len(b.Status.Malformed) > 0 {
		return fmt.Errorf("cannot read %q of the bundle's status", b.Status.Malformed)
	}
	if crd := m.crds[meta.Kind]; crd != nil {
		return checkAgainst(crd, document)
	}
	return nil
}

// checkAgainst returns an error for fields and values that the API server would prune or reject.
func checkAgainst(crd *apiextensionsv1.CustomResourceDefinition, document string) error {
	var content map[string]any
	if err := utilyaml.Unmarshal([]byte(document), &content); err != nil { // Numbers become int64, as in objects from a cluster.
		return err
	}
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		return err
	}
	if errs := validation.ValidateCustomResource(nil, content, validator); len(errs) > 0 {
		return errs.ToAggregate()
	}
	structure, err := structuralschema.NewStructural(&schema)
	if err != nil {
		return err
	}
	if unknown := pruning.PruneWithOptions(content, structure, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		return fmt.Errorf("the CRD does not know %q", unknown)
	}
	return nil
}

// kustomization is the name of the file that lists what "kubectl apply -k" of its folder applies.
const kustomization = "kustomization.yaml"

// manifestsIn returns the documents of the manifests in a folder of config and below it, by file name.
func manifestsIn(t *testing.T, folder string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(filepath.Join("..", folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == kustomization {
			return err
		}
		data, err := os.ReadFile(path)
		found[path] = documentsOf(string(data))
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("cannot read config/%s: %d files found, %v", folder, len(found), err)
	}
	return found
}

func TestManifestsAreValid(t *testing.T) {
	m := newManifests(t)
	for _, folder := range []string{"samples", "rbac"} {
		for path, documents := range manifestsIn(t, folder) {
			for _, document := range documents {
				if strings.HasPrefix(filepath.Base(path), "composite-app") {
					if err := yaml.UnmarshalStrict([]byte(document), &rsync.CompositeApp{}); err != nil {
						t.Errorf("%s: %v", path, err)
					}
					continue
				}
				if err := m.check(document); err != nil {
					t.Errorf("%s: %v\n%s", path, err, document)
				}
			}
		}
	}
}

// TestKustomizationsListEveryFile asserts that applying a folder applies all its files, without the folders below it.
func TestKustomizationsListEveryFile(t *testing.T) {
	var folders []string
	for _, pattern := range []string{"../crd", "../rbac", "../rbac/member", "../rbac/options/*", "../rbac/oam/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("cannot find the folders %s: %v", pattern, err)
		}
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join(folder, kustomization))
		if err != nil {
			t.Errorf("%s cannot be applied: %v", folder, err)
			continue
		}
		var k struct {
			APIVersion, Kind string
			Resources        []string
		}
		if err := yaml.UnmarshalStrict(data, &k); err != nil {
			t.Errorf("%s: cannot read %s: %v", folder, kustomization, err)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{kustomization}
		for _, name := range k.Resources {
			want = append(want, filepath.Base(name))
		}
		for _, file := range files {
			if !slices.Contains(want, filepath.Base(file)) {
				t.Errorf("%s: %s does not list %s", folder, kustomization, filepath.Base(file))
			}
		}
		if len(want) != len(files) {
			t.Errorf("%s: %s lists %d files, and there are %d", folder, kustomization, len(want)-1, len(files)-1)
		}
	}
}

func TestExamplesInPagesAreValid(t *testing.T) {
	m := newManifests(t)
	for _, p := range allPages(t) {
		if !strings.HasPrefix(p.name, "config/docs/") {
			continue
		}
		for _, block := range p.fences("yaml") {
			for _, document := range documentsOf(block) {
				if err := m.check(document); err != nil {
					t.Errorf("%s: an example is not valid: %v\n%s", p.name, err, document)
				}
			}
		}
	}
}

func TestWrongManifestsAreFound(t *testing.T) {
	m := newManifests(t)
	head := map[string]string{
		"HealthScope":         "apiVersion: core.oam.dev/v1alpha2\nkind: HealthScope\nmetadata: {name: x}\n",
		"ResourceBundleState": "apiVersion: k8splugin.io/v1alpha1\nkind: ResourceBundleState\nmetadata: {name: x}\n",
		"Configuration":       "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n",
		"ConfigMap":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	}
	for name, document := range map[string]string{
		"unknown field of a scope":         head["HealthScope"] + "spec: {app: []}",
		"value out of bounds":              head["HealthScope"] + "spec: {rollup: {healthyPercentage: 101}}",
		"unknown field of a bundle":        head["ResourceBundleState"] + "spec: {selectors: {}}",
		"unknown field of bundle's status": head["ResourceBundleState"] + "status: {redy: true}",
		"unknown setting":                  head["Configuration"] + "cluster: x",
		"unknown field of Kubernetes":      head["ConfigMap"] + "dada: {}",
		"unknown kind":                     "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: x}",
		"field given twice":                head["ConfigMap"] + "data: {a: b}\ndata: {c: d}",
	} {
		if m.check(document) == nil {
			t.Errorf("%s: nothing was found wrong with\n%s", name, document)
		}
	}
}
