package observed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	// Directory is the environment variable that names the folder with Prometheus's programs.
	Directory = "HEALTHSCOPE_PROMETHEUS"
	// Required is the environment variable that, with the value 1, makes tests fail that would be skipped without Prometheus.
	Required = "HEALTHSCOPE_REQUIRE_PROMETHEUS"
)

// ErrMissing means that a program of Prometheus is not installed.
var ErrMissing = errors.New("it is not installed")

// Find returns the path of a program of Prometheus, prometheus or promtool. It looks in $HEALTHSCOPE_PROMETHEUS if that is set;
// otherwise in healthscope/prometheus of the user's cache directory, and then in $PATH. If the program is not found, the error
// wraps ErrMissing.
func Find(program string) (string, error) {
	if folder := os.Getenv(Directory); folder != "" {
		return find(filepath.Join(folder, program), program)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if path, err := find(filepath.Join(cache, "healthscope", "prometheus", program), program); err == nil {
			return path, nil
		}
	}
	return find(program, program)
}

func find(path, program string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %q, of Debian's package prometheus for instance: %w (%w)", program, ErrMissing, err)
	}
	return found, nil
}

// tester has the methods of a test that Program calls.
type tester interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Program returns the path of a program of Prometheus for a test. If the program is not installed, it skips the test, or fails
// it if $HEALTHSCOPE_REQUIRE_PROMETHEUS is 1.
func Program(t tester, name string) string {
	t.Helper()
	path, err := Find(name)
	switch {
	case err == nil:
	case os.Getenv(Required) == "1":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return path
}
