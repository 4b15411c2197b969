package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds the program of a package of the source tree below root into a file. It builds without cgo and with -trimpath,
// like a release, so that it can reuse what `make build` has compiled.
func Build(ctx context.Context, root, program, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, source) //nolint:gosec // Tests say what they build.
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %q: %w\n%s", source, err, out)
	}
	return nil
}
