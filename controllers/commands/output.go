package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// Output formats.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// checkFormat returns an error if the value of --output is not one of formats.
func checkFormat(format string, formats ...string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	last := len(formats) - 1
	return errors.Errorf("--output is %q; it must be %s or %s", format, strings.Join(formats[:last], ", "), formats[last])
}

// encode writes a value as JSON or YAML.
func encode(out io.Writer, format string, value any) error {
	var data []byte
	var err error
	if format == formatYAML {
		data, err = yaml.Marshal(value)
	} else {
		data, err = json.MarshalIndent(value, "", "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return errors.Wrap(err, "cannot encode the output")
	}
	_, err = out.Write(data)
	return err
}

// table is a table of text. states has the state of each row, which determines its color.
type table struct {
	columns []string
	rows    [][]string
	states  []string
}

func (t *table) add(state string, cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(printable(c), "-")
	}
	t.rows, t.states = append(t.rows, cells), append(t.states, state)
}

// print prints the table.
func (t *table) print(out io.Writer, colour bool) error {
	_, err := io.WriteString(out, t.render(colour))
	return err
}

// render returns the table as text, with colored states if colour is set. It does not use a tabwriter, which would count color codes as width.
func (t *table) render(colour bool) string {
	var b strings.Builder
	rows, states := slices.Concat([][]string{t.columns}, t.rows), slices.Concat([]string{""}, t.states)
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3)
			switch {
			case states[n] == "" || !colour:
			case t.columns[i] == stateColumn:
				cell = colorize(cell, states[n])
			case t.columns[i] == healthColumn:
				cell = colorize(cell, cell)
			}
			if i == len(row)-1 {
				padding = "\n"
			}
			b.WriteString(cell + padding)
		}
	}
	return b.String()
}

// The columns that have colors: the state of the row, and the health.
const (
	stateColumn  = "STATE"
	healthColumn = "HEALTH"
)

// colorize returns a text in the color of the state of an object, a scope or a cluster.
func colorize(text, state string) string {
	const green, yellow, red, magenta, end = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[35m", "\x1b[0m"
	switch state {
	case "":
		return text
	case string(healthscope.Ready), string(corev1alpha2.Healthy), string(fleet.Connected):
		return green + text + end
	case string(healthscope.Pending), string(healthscope.Terminating), string(fleet.Connecting), string(fleet.MonitorStale):
		return yellow + text + end
	case string(healthscope.Unknown), string(corev1alpha2.UnknownHealth):
		return magenta + text + end
	}
	return red + text + end // Failed, NotPresent, unhealthy, and clusters that cannot be seen.
}

// age returns the duration since a time, or an empty string if the time is zero.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(at), 0))
}

// printable returns a text as one line without control characters: text from kubeconfig files and annotations must not control a terminal.
func printable(text string) string { return healthscope.Clean(text) }

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
