package assets

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

// buildModule is the directory of the programs' go.mod, relative to the root of the repository.
const buildModule = "e2e/controlplane/build"

// The modules whose versions are the versions of the programs.
const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	kwokModule       = "sigs.k8s.io/kwok"
)

// Versions holds the module versions of the programs, for instance v1.37.2.
type Versions struct {
	Kubernetes string
	Etcd       string
	Kwok       string
}

// String returns the versions in readable form, for instance "Kubernetes v1.37.2, etcd v3.7.3, kwok v0.8.0".
func (v Versions) String() string {
	return fmt.Sprintf("Kubernetes %s, etcd %s, kwok %s", v.Kubernetes, v.Etcd, v.Kwok)
}

// key returns the name of the directory that holds these versions for this platform.
func (v Versions) key() string {
	return fmt.Sprintf("kubernetes-%s_etcd-%s_kwok-%s_%s-%s", v.Kubernetes, v.Etcd, v.Kwok, runtime.GOOS, runtime.GOARCH)
}

// linkerFlags returns linker flags that omit the debug tables (a third of the size) and set the version that `kubectl
// version` and the API server's /version report. See k8s.io/component-base/version.
func (v Versions) linkerFlags() (string, error) {
	major, rest, found := strings.Cut(strings.TrimPrefix(v.Kubernetes, "v"), ".")
	minor, _, alsoFound := strings.Cut(rest, ".")
	if !found || !alsoFound {
		return "", fmt.Errorf("cannot stamp version %q of %s: want vMAJOR.MINOR.PATCH", v.Kubernetes, kubernetesModule)
	}
	const stamp = " -X k8s.io/component-base/version."
	return "-s -w" + stamp + "gitVersion=" + v.Kubernetes + stamp + "gitMajor=" + major + stamp + "gitMinor=" + minor, nil
}

// parseVersions reads the required versions from the text of a go.mod.
func parseVersions(goMod []byte) (Versions, error) {
	file, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return Versions{}, err
	}
	required := map[string]string{}
	for _, r := range file.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	for _, module := range []string{kubernetesModule, etcdModule, kwokModule} {
		if required[module] == "" {
			return Versions{}, fmt.Errorf("cannot find a required version of module %q", module)
		}
	}
	return Versions{Kubernetes: required[kubernetesModule], Etcd: required[etcdModule], Kwok: required[kwokModule]}, nil
}

// findBuildModule searches for the build module in directory start and its parents, because commands and tests run in any
// directory of a checkout. It returns the module's directory and its versions.
func findBuildModule(start string) (string, Versions, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		module := filepath.Join(dir, filepath.FromSlash(buildModule))
		goMod, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err == nil {
			versions, err := parseVersions(goMod)
			if err != nil {
				return "", Versions{}, fmt.Errorf("cannot read versions in %q: %w", filepath.Join(module, "go.mod"), err)
			}
			return module, versions, nil
		}
		if !os.IsNotExist(err) {
			return "", Versions{}, fmt.Errorf("cannot read versions: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", Versions{}, fmt.Errorf("cannot find %s/go.mod in %q or above it", buildModule, start)
		}
	}
}
