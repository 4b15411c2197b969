package commands

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
)

// version is set by the linker in releases: -ldflags "-X github.com/healthscope/healthscope/controllers/commands.version=v1.2.3".
var version string

// libraries are the modules whose versions determine which API servers and registries the program supports.
var libraries = []string{"go.etcd.io/etcd/client/v3", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// build describes the build of the program. Fields that the go command did not record are empty.
type build struct {
	Version string `json:"version"`
	// Commit is the revision in git, and CommitTime its time in RFC 3339. The build time is not recorded: builds are reproducible.
	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commitTime,omitempty"`
	// Modified is true if the source differed from the commit.
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Libraries are versions by module.
	Libraries map[string]string `json:"libraries,omitempty"`
}

// Version returns the version of the program: that of the release, or else of the module, or else "devel".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "devel")
	}
	return cmp.Or(version, "devel")
}

// versionLine returns one line with the version, the Go version and the platform.
func versionLine() string {
	return fmt.Sprintf("healthscope %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// thisBuild returns the build of this program.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

// buildOf returns the build that info describes.
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: Version(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Libraries: map[string]string{}}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommitTime = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if !slices.Contains(libraries, m.Path) {
			continue
		}
		if m.Replace != nil {
			m = &debug.Module{Path: m.Path, Version: m.Replace.Version}
		}
		b.Libraries[m.Path] = m.Version
	}
	return b
}

func newVersion() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return printBuild(c.OutOrStdout(), thisBuild(), output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", formatText, "the output format: text, json or yaml")
	return c
}

// printBuild prints a build in an output format.
func printBuild(out io.Writer, b build, format string) error {
	if err := checkFormat(format, formatText, formatJSON, formatYAML); err != nil {
		return usageError(errors.Wrap(err, "cannot print the version"))
	}
	if format != formatText {
		return errors.Wrap(encode(out, format, b), "cannot print the version")
	}
	var text strings.Builder
	text.WriteString(versionLine())
	if b.Commit != "" {
		text.WriteString("commit " + b.Commit)
		if b.CommitTime != "" {
			text.WriteString(" of " + b.CommitTime)
		}
		if b.Modified {
			text.WriteString(", modified")
		}
		text.WriteString("\n")
	}
	for _, path := range slices.Sorted(maps.Keys(b.Libraries)) {
		fmt.Fprintf(&text, "%s %s\n", path, b.Libraries[path])
	}
	_, err := io.WriteString(out, text.String())
	return errors.Wrap(err, "cannot print the version")
}
