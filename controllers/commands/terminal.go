package commands

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether what is written is shown on a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
