package enrol

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManifestsEqualTheObjectsOfTheCommand compares the manifests for an enrolment by hand with the objects of the command.
func TestManifestsEqualTheObjectsOfTheCommand(t *testing.T) {
	for folder, want := range map[string][]client.Object{
		"member":        Enrolment{}.MemberObjects(),
		"member/oam":    {aggregatedRole(oamRole, labelKinds, oamRules())},
		"member/deploy": deployObjects([]string{""}), // The user of kubectl chooses the namespace.
	} {
		got := readObjects(t, filepath.Join("../../config/rbac", folder))
		for _, o := range want {
			gvks, _, err := clientgoscheme.Scheme.ObjectKinds(o)
			if err != nil {
				t.Fatal(err)
			}
			o.GetObjectKind().SetGroupVersionKind(gvks[0])
		}
		byName := func(a, b client.Object) int {
			name := func(o client.Object) string {
				return o.GetObjectKind().GroupVersionKind().Kind + o.GetNamespace() + o.GetName()
			}
			return strings.Compare(name(a), name(b))
		}
		slices.SortFunc(got, byName)
		slices.SortFunc(want, byName)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("config/rbac/%s (-want +got):\n%s", folder, diff)
		}
	}
}

// readObjects reads the manifests of a folder.
func readObjects(t *testing.T, folder string) (objects []client.Object) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o, ok := decoded.(client.Object)
			if !ok {
				t.Fatalf("%s holds a %T", file, decoded)
			}
			objects = append(objects, o)
		}
	}
	return objects
}
