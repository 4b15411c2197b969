package commands

import (
	"fmt"
	"io"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal reports whether out is a terminal.
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

// hasColor reports whether the output of a command has colors.
func hasColor(c *cobra.Command) bool {
	switch flagValue(c, "color") {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return isTerminal(c.OutOrStdout()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // https://no-color.org
}

// progress shows what a command is doing, in one line of a terminal. It prints nothing if out is not a terminal.
type progress struct {
	out   io.Writer
	live  bool
	shown string
}

func newProgress(out io.Writer) *progress { return &progress{out: out, live: isTerminal(out)} }

// showf replaces the line by a text.
func (p *progress) showf(format string, args ...any) {
	if text := printable(fmt.Sprintf(format, args...)); p.live && text != p.shown {
		fmt.Fprint(p.out, clearLine, text)
		p.shown = text
	}
}

// clear clears the line.
func (p *progress) clear() {
	if p.shown != "" {
		fmt.Fprint(p.out, clearLine)
		p.shown = ""
	}
}

// clearLine is the escape sequence that clears the line of the cursor.
const clearLine = "\r\x1b[K"
