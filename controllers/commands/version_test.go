package commands

import (
	"encoding/json"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

func TestVersion(t *testing.T) {
	code, out, errOut := run(t, "version")
	if code != 0 || errOut != "" || !regexp.MustCompile(`^healthscope \S+ \(go1\.\S+, \w+/\w+\)\n`).MatchString(out) {
		t.Errorf("exit code %d, output %q, error output %q", code, out, errOut)
	}
	before := version
	t.Cleanup(func() { version = before })
	version = "v1.2.3"
	if _, out, _ := run(t, "version"); !strings.HasPrefix(out, "healthscope v1.2.3 (") {
		t.Errorf("a release says %q", out)
	}
}

func TestVersionFormatsAgree(t *testing.T) {
	var fromJSON, fromYAML build
	code, out, errOut := run(t, "version", "-o", "json")
	if err := json.Unmarshal([]byte(out), &fromJSON); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errOut)
	}
	code, out, errOut = run(t, "version", "--output=yaml")
	if err := yaml.UnmarshalStrict([]byte(out), &fromYAML); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errOut)
	}
	if diff := cmp.Diff(fromJSON, fromYAML, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("JSON and YAML differ:\n%s", diff)
	}
	if fromJSON.Version != Version() || fromJSON.GoVersion != runtime.Version() || fromJSON.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("it says that it is %+v", fromJSON)
	}
}

func TestVersionNamesTheCommit(t *testing.T) {
	b := buildOf(&debug.BuildInfo{
		Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "4b825dc642cb"},
			{Key: "vcs.time", Value: "2026-11-22T10:00:00Z"}, {Key: "vcs.modified", Value: "true"},
		},
		Deps: []*debug.Module{
			{Path: "k8s.io/client-go", Version: "v0.37.2", Replace: &debug.Module{Path: "example.org/client-go", Version: "v0.37.3"}},
			{Path: "k8s.io/api", Version: "v0.37.2"},
		},
	})
	if diff := cmp.Diff(map[string]string{"k8s.io/client-go": "v0.37.3"}, b.Libraries); diff != "" {
		t.Errorf("libraries (-want +got):\n%s", diff)
	}
	var out strings.Builder
	if err := printBuild(&out, b, "text"); err != nil {
		t.Fatal(err)
	}
	want := versionLine() + "commit 4b825dc642cb of 2026-11-22T10:00:00Z, modified\nk8s.io/client-go v0.37.3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
