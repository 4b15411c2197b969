package installation

import (
	"context"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/process"
)

// Build builds the programs of an installation from the source tree below root into a directory, as Options.Bin wants them.
func Build(ctx context.Context, root, bin string) error {
	group, ctx := errgroup.WithContext(ctx)
	for program, source := range map[string]string{"healthscope": ".", "aai-simulator": "./aai/simulator/cmd/aai-simulator"} {
		group.Go(func() error { return process.Build(ctx, root, filepath.Join(bin, program), source) })
	}
	return group.Wait()
}
