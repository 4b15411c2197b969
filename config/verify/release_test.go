package verify

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// requirement matches a line of a go.mod file that names a module and its version.
var requirement = regexp.MustCompile(`(?m)^\t(\S+) v(\S+)`)

// readFile reads a file of the project, by its path from the root.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// chartVersions returns the version of the chart, and the version of the program in it.
func chartVersions(t *testing.T) (chart, program string) {
	t.Helper()
	var c struct{ Version, AppVersion string }
	if err := yaml.Unmarshal([]byte(readFile(t, "charts", "healthscope", "Chart.yaml")), &c); err != nil {
		t.Fatalf("cannot read the chart: %v", err)
	}
	return c.Version, c.AppVersion
}

func TestAReleaseHasOneVersion(t *testing.T) {
	chart, program := chartVersions(t)
	if program != "v"+chart {
		t.Errorf("the chart is of version %q, and its program of %q", chart, program)
	}
	image := "image: " + imageOf(t) + ":" + program + "\n"
	for _, name := range []string{"controller", "monitor"} {
		if !strings.Contains(readFile(t, "config", "manager", name, "deployment.yaml"), image) {
			t.Errorf("config/manager/%s/deployment.yaml has no line %q", name, image)
		}
	}
	if label := "app.kubernetes.io/version: " + program + "\n"; !strings.Contains(readFile(t, "config", "default", "kustomization.yaml"), label) {
		t.Errorf("config/default/kustomization.yaml has no label %q", label)
	}
	newest := regexp.MustCompile(`(?m)^## \[(\S+)\] - (Unreleased|\d{4}-\d\d-\d\d)$`).FindStringSubmatch(readFile(t, "CHANGELOG.md"))
	if newest == nil || newest[1] != chart {
		t.Errorf("the newest version in CHANGELOG.md is %q, and that of the chart %q", newest, chart)
	}
}

// imageOf returns the repository to which releases push images.
func imageOf(t *testing.T) string {
	t.Helper()
	return releaseMake(t, "--eval=print-image: ; @echo $(IMAGE)", "print-image")
}

// releaseMake runs make and returns its output.
func releaseMake(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	var problems bytes.Buffer
	cmd.Dir, cmd.Stderr = root, &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run make %q: %v\n%s", args, err, problems.String())
	}
	return strings.TrimSpace(string(out))
}

func TestReleaseNotesAreThoseOfTheVersion(t *testing.T) {
	_, program := chartVersions(t)
	notes := releaseMake(t, "release-notes", "VERSION="+program)
	if !strings.Contains(notes, "\n- ") || strings.Contains(notes, "\n## ") || strings.Contains(notes, "]: http") {
		t.Errorf("the release notes are:\n%s", notes)
	}
	cmd := exec.CommandContext(t.Context(), "make", "release-notes", "VERSION=v0.0.99")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("a version of which the changelog says nothing has release notes:\n%s", out)
	}
}

func TestTheChartTakesTheImageOfReleases(t *testing.T) {
	var values struct {
		Image struct{ Repository string }
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "charts", "healthscope", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if values.Image.Repository != imageOf(t) {
		t.Errorf("the chart takes the image %q; releases push %q", values.Image.Repository, imageOf(t))
	}
}

// TestVersionsThatAreTestedAreDocumented compares the compatibility table with the versions of the modules against which tests
// run.
func TestVersionsThatAreTestedAreDocumented(t *testing.T) {
	p := readPage(t, "compatibility.md")
	for file, modules := range map[string]map[string]string{
		"e2e/controlplane/build/go.mod": {"k8s.io/kubernetes": "Tested with %s", "go.etcd.io/etcd/server/v3": "etcd %s", "sigs.k8s.io/kwok": "kwok %s"},
		"config/tools/helm/go.mod":      {"helm.sh/helm/v4": "Tested with %s"},
		"config/tools/release/go.mod":   {"sigs.k8s.io/kustomize/kustomize/v5": "Tested with %s"},
	} {
		found := map[string]string{}
		for _, match := range requirement.FindAllStringSubmatch(readFile(t, file), -1) {
			found[match[1]] = match[2]
		}
		for path, phrase := range modules {
			if want := strings.ReplaceAll(phrase, "%s", found[path]); found[path] == "" || !strings.Contains(p.text, want) {
				t.Errorf("%s: say %q of %s, which %s has in version %q", p.name, want, path, file, found[path])
			}
		}
	}
}
