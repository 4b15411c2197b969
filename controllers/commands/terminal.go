package commands

import (
	"fmt"
	"io"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal reports whether what is written is shown on a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// colorMode is the value of --color. It implements pflag.Value.
type colorMode string

// String implements pflag.Value.
func (m *colorMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (*colorMode) Type() string { return "string" }

// Set implements pflag.Value.
func (m *colorMode) Set(text string) error {
	switch text {
	case colorAuto, colorAlways, colorNever:
		*m = colorMode(text)
		return nil
	}
	return errors.New("it must be auto, always or never")
}

// hasColor reports whether what a command prints has colours.
func hasColor(c *cobra.Command) bool {
	switch flag(c, "color") {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return isTerminal(c.OutOrStdout()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // https://no-color.org
}

// progress shows in one line of a terminal what a command is doing. Elsewhere it shows nothing.
type progress struct {
	out  io.Writer
	live bool
	said string
}

func newProgress(out io.Writer) *progress { return &progress{out: out, live: isTerminal(out)} }

// sayf shows a text in place of the one before.
func (p *progress) sayf(format string, args ...any) {
	if text := printable(fmt.Sprintf(format, args...)); p.live && text != p.said {
		fmt.Fprint(p.out, clearLine, text)
		p.said = text
	}
}

// end takes the line away.
func (p *progress) end() {
	if p.said != "" {
		fmt.Fprint(p.out, clearLine)
		p.said = ""
	}
}

// clearLine makes the line of the cursor an empty one.
const clearLine = "\r\x1b[K"
