package app

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases: -ldflags "-X github.com/healthscope/healthscope/controllers/app.version=v1.2.3".
var version string

// Version returns the version of the program: that of the release, or else of the module, or else "devel".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "devel")
	}
	return cmp.Or(version, "devel")
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "healthscope %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
