package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The programs, by the names of their files.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	Kwok                  = "kwok"
)

// KwokManifests is the directory with the Stages that kwok is started with: those
// that make nodes and pods ready at once.
const KwokManifests = "kwok-manifests"

// environmentVariable names a directory with the programs that is used instead of the cache.
const environmentVariable = "KUBEBUILDER_ASSETS"

// ErrMissing says that a program is not there.
var ErrMissing = errors.New("missing")

// Set is a directory with programs.
type Set struct {
	dir string
	// hint tells what to do when something is missing.
	hint string
}

// Locate says where the programs are: in $KUBEBUILDER_ASSETS when that is set, else in the user's cache directory under
// the versions of the checkout that holds the working directory. It does not look whether they are there: see Require.
func Locate() (Set, error) {
	if dir := os.Getenv(environmentVariable); dir != "" {
		return Set{dir: dir, hint: "unset " + environmentVariable + ", which names this directory, to use what `make controlplane` builds"}, nil
	}
	work, err := os.Getwd()
	if err != nil {
		return Set{}, fmt.Errorf("cannot locate the control plane's programs: %w", err)
	}
	_, versions, err := findBuildModule(work)
	if err != nil {
		return Set{}, fmt.Errorf("cannot locate the control plane's programs, and %s is not set: %w", environmentVariable, err)
	}
	return cached(versions)
}

// cached is the set of these versions in the user's cache directory.
func cached(versions Versions) (Set, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Set{}, fmt.Errorf("cannot locate the control plane's programs: %w", err)
	}
	dir := filepath.Join(cache, "healthscope", "controlplane", versions.key())
	return Set{dir: dir, hint: "run `make controlplane` first, which builds them once per machine"}, nil
}

// Dir is the directory.
func (s Set) Dir() string {
	return s.dir
}

// Path is the path of a program or of KwokManifests.
func (s Set) Path(name string) string {
	return filepath.Join(s.dir, name)
}

// Require returns an error that wraps ErrMissing, names all that is missing among names and tells what to do about it.
func (s Set) Require(names ...string) error {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(s.Path(name))
		return err == nil
	})
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("cannot use %q: %w: %s; %s", s.dir, ErrMissing, strings.Join(missing, ", "), s.hint)
}

// all names everything that a complete set holds.
func all() []string {
	return []string{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler, Kubectl, Kwok, KwokManifests}
}
