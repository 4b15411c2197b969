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

// TestManifestsForHandsAreThoseOfTheCommand: a member that is made by hand has what the command makes.
func TestManifestsForHandsAreThoseOfTheCommand(t *testing.T) {
	files, err := filepath.Glob("../../config/rbac/member/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []client.Object
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
			got = append(got, o)
		}
	}
	want := Enrolment{}.MemberObjects()
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
		t.Errorf("config/rbac/member (-want +got):\n%s", diff)
	}
}
