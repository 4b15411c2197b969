package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The file names of the programs.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	Kwok                  = "kwok"
)

// KwokManifests is the directory with the Stages that kwok is started with. They
// make nodes and pods ready immediately.
const KwokManifests = "kwok-manifests"

// environmentVariable names a directory with the programs that is used instead of the cache.
const environmentVariable = "KUBEBUILDER_ASSETS"

// ErrMissing means that a program does not exist.
var ErrMissing = errors.New("missing")

// Set is a directory with programs.
type Set struct {
	dir string
	// hint is the advice for a missing program.
	hint string
}

// Locate returns the location of the programs: $KUBEBUILDER_ASSETS if it is set, else a directory in the user's cache for
// the versions of the checkout that contains the working directory. It does not check that they exist: see Require.
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

// cached returns the set of these versions in the user's cache directory.
func cached(versions Versions) (Set, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Set{}, fmt.Errorf("cannot locate the control plane's programs: %w", err)
	}
	dir := filepath.Join(cache, "healthscope", "controlplane", versions.key())
	return Set{dir: dir, hint: "run `make controlplane` first, which builds them once per machine"}, nil
}

// Dir returns the directory.
func (s Set) Dir() string {
	return s.dir
}

// Path returns the path of a program or of KwokManifests.
func (s Set) Path(name string) string {
	return filepath.Join(s.dir, name)
}

// Require returns an error if any of names is missing. The error wraps ErrMissing, lists the missing names and contains the hint.
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

// all returns the names of everything in a complete set.
func all() []string {
	return []string{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler, Kubectl, Kwok, KwokManifests}
}
