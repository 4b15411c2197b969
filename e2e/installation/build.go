package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/process"
)

// Build builds the programs of an installation from the source tree below root, and returns their directory, for Options.Bin.
// All callers share the directory and the built programs.
func Build(ctx context.Context, root string) (bin string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", fmt.Errorf("cannot find the source tree: %w", err)
	}
	bin = filepath.Join(root, "bin", "e2e")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return "", fmt.Errorf("cannot make a directory for programs: %w", err)
	}
	release, err := process.Lock(filepath.Join(bin, ".lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	group, ctx := errgroup.WithContext(ctx)
	for program, source := range map[string]string{"healthscope": ".", "aai-simulator": "./aai/simulator/cmd/aai-simulator"} {
		group.Go(func() error { return process.Build(ctx, root, filepath.Join(bin, program), source) })
	}
	return bin, group.Wait()
}
