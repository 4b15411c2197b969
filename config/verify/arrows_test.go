package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/healthscope/healthscope"

// layers are the folders of the project from top to bottom. A package may import packages of its own layer and of lower layers.
// The module's root is main.go.
var layers = []string{"", "controllers", "aai", "healthscope", "apis"}

// beside are the folders outside the layers. They may import every package. No package in a layer may import them.
var beside = []string{"e2e", "config"}

// importers maps a package to the only package that may import it. The empty path is the module's root, main.go.
var importers = map[string]string{"controllers/commands": "", "controllers/app": "controllers/commands"}

// controllers are the packages of controllers from top to bottom. The packages of a line are on the same level. A package may
// import packages of the lines below its own line. Every package of controllers may import those that are in no line.
var controllers = [][]string{{"commands"}, {"app"}, {"inventory"}, {"scope", "oam", "probe", "recorder", "rsync", "enrol"}, {"fleet", "monitor"}, {"observe"}}

// purePackages may not directly import packages that read a clock, access the network or carry a context.
var purePackages = []string{"healthscope", "healthscope/rules", "healthscope/rules/expr", "healthscope/bundle", "healthscope/deploy", "healthscope/kubevela", "healthscope/probe", "healthscope/status", "aai/mapping", "aai/plan"}

// impure are the import paths that a pure package may not use. A path that ends in a slash is a prefix.
var impure = []string{
	"context", "net", "net/", "os", "os/", "log", "log/", "k8s.io/client-go/", "sigs.k8s.io/controller-runtime/", "github.com/go-logr/",
	"github.com/prometheus/", "k8s.io/klog/", "k8s.io/utils/clock", "github.com/go-resty/",
}

// narrow maps folders to import prefixes. The packages in a folder may import only the standard library, the project and these
// prefixes.
var narrow = map[string][]string{
	"apis":          {"k8s.io/apimachinery/"},
	"aai/simulator": {},
}

// pkg is the output of `go list -json` for a package.
type pkg struct {
	ImportPath string
	Imports    []string
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...", module+"/apis/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("cannot read the list of packages: %v", err)
		}
		all = append(all, p)
	}
}

// folder returns the path of a package within the module, and whether the package is in the module.
func folder(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// levels returns the index of a package among the layers, and its index among the lines of controllers. An index is -1 if the
// package is in none of them.
func levels(path string) (layer, line int) {
	name, _ := strings.CutPrefix(path, "controllers/")
	return slices.Index(layers, top(path)), slices.IndexFunc(controllers, func(line []string) bool { return slices.Contains(line, name) })
}

func TestArrowsRunDownOnly(t *testing.T) {
	for _, p := range listPackages(t) {
		from, _ := folder(p.ImportPath)
		if layer, _ := levels(from); layer < 0 {
			if !slices.Contains(beside, top(from)) {
				t.Errorf("%q is in none of the project's folders", p.ImportPath)
			}
			continue
		}
		for _, imported := range p.Imports {
			if to, ours := folder(imported); ours {
				checkArrow(t, from, to)
			}
		}
	}
}

// checkArrow fails the test if a package may not import another one.
func checkArrow(t *testing.T, from, to string) {
	t.Helper()
	layer, line := levels(from)
	toLayer, toLine := levels(to)
	if slices.Contains(beside, top(to)) {
		t.Errorf("%q imports %q, which is for tests and tools only", from, to)
	}
	if importer, limited := importers[to]; limited && importer != from {
		t.Errorf("%q imports %q, which only %q may import", from, to, importer)
	}
	if toLayer < layer {
		t.Errorf("%q imports %q: arrows run down only, %s", from, to, strings.Join(layers[1:], " → "))
	}
	if top(from) != "controllers" || toLine < 0 {
		return
	}
	if line < 0 {
		t.Errorf("%q imports %q, and is imported by all", from, to)
	} else if toLine <= line {
		t.Errorf("%q imports %q: of controllers a package may import those below it only, %v", from, to, controllers)
	}
}

func TestPackagesImportWhatTheyMay(t *testing.T) {
	found := map[string]bool{}
	for _, p := range listPackages(t) {
		from, _ := folder(p.ImportPath)
		found[from] = true
		for _, imported := range p.Imports {
			if slices.Contains(purePackages, from) && matches(imported, impure) {
				t.Errorf("%q is pure and imports %q", from, imported)
			}
			_, ours := folder(imported)
			for prefix, allowed := range narrow {
				if strings.HasPrefix(from+"/", prefix+"/") && !ours && strings.Contains(top(imported), ".") && !matches(imported, allowed) {
					t.Errorf("%q imports %q; it may import the standard library and %q only", from, imported, allowed)
				}
			}
		}
	}
	for _, want := range purePackages {
		if !found[want] {
			t.Errorf("there is no package %q, which should be pure", want)
		}
	}
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return path == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(path, pattern)
	})
}
