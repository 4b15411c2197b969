package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestReadManifests(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: third}\n",
		"a.json":             `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}`,
		"kustomization.yaml": "resources: [a.json]",
		"README.md":          "no manifest",
		"sub/c.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fourth}\n",
		"bad/broken.yaml":    "a: [",
		"bad/nameless.yaml":  "apiVersion: v1\nkind: ConfigMap\n",
		"text/notes.txt":     "no manifest",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		path    string
		want    []string
		wantErr string
	}{
		"a directory, without its subdirectories": {path: ".", want: []string{"first", "second", "third"}},
		"a file":                      {path: "sub/c.yaml", want: []string{"fourth"}},
		"not YAML":                    {path: "bad/broken.yaml", wantErr: "broken.yaml"},
		"an object without a name":    {path: "bad/nameless.yaml", wantErr: "lacks apiVersion, kind or metadata.name"},
		"a directory without any":     {path: "text", wantErr: "no *.yaml, *.yml or *.json"},
		"something that is not there": {path: "absent", wantErr: "cannot read manifests"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := readManifests(filepath.Join(dir, tc.path))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("readManifests: %v", err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, object.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCrashStagesUseTheAnnotation(t *testing.T) {
	objects, err := decodeManifests("crash.yaml", crashStages)
	if err != nil || len(objects) != 2 {
		t.Fatalf("want two Stages, got %d, error %v", len(objects), err)
	}
	for _, object := range objects {
		encoded, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(encoded), `.metadata.annotations["`+CrashAnnotation+`"]`) {
			t.Errorf("Stage %q does not look at annotation %q", object.GetName(), CrashAnnotation)
		}
	}
}
