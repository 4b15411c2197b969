package commands

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// Forms of the output.
const (
	formText  = "text"
	formTable = "table"
	formWide  = "wide"
	formJSON  = "json"
	formYAML  = "yaml"
)

// checkForm refuses a value of --output that is none of some forms.
func checkForm(form string, forms ...string) error {
	if slices.Contains(forms, form) {
		return nil
	}
	last := len(forms) - 1
	return errors.Errorf("--output is %q; it must be %s or %s", form, strings.Join(forms[:last], ", "), forms[last])
}

// encode writes a value as JSON or YAML.
func encode(out io.Writer, form string, value any) error {
	var data []byte
	var err error
	if form == formYAML {
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

// table is a table. The states are those of its rows.
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

// painted returns the table, its states in colours if they are wanted.
func (t *table) painted(colour bool) string {
	var b strings.Builder
	t.write(&b, colour)
	return b.String()
}

// write writes the table. Colours have no width, so that a writer of tabs cannot be used.
func (t *table) write(b *strings.Builder, colour bool) {
	widths := make([]int, len(t.columns))
	for _, cells := range append([][]string{t.columns}, t.rows...) {
		for i, c := range cells {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	row := func(cells []string, state string) {
		for i, c := range cells {
			text := painted(c, colourOf(t.columns[i], c, state), colour && state != "")
			if i < len(cells)-1 {
				text += strings.Repeat(" ", widths[i]-len([]rune(c))+3)
			}
			b.WriteString(text)
		}
		b.WriteString("\n")
	}
	row(t.columns, "")
	for i, cells := range t.rows {
		row(cells, t.states[i])
	}
}

// The columns that have colours: that of a row's state, and that of a word for health.
const (
	stateColumn  = "STATE"
	healthColumn = "HEALTH"
)

// colourOf returns the state whose colour a cell has; empty for none.
func colourOf(column, cell, state string) string {
	switch column {
	case stateColumn:
		return state
	case healthColumn:
		return cell
	}
	return ""
}

// painted returns a text in the colour of a state of an object, of a scope or of a cluster.
func painted(text, state string, colour bool) string {
	const green, yellow, red, magenta, end = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[35m", "\x1b[0m"
	if !colour || state == "" {
		return text
	}
	switch state {
	case string(healthscope.Ready), string(corev1alpha2.Healthy), string(fleet.Connected):
		return green + text + end
	case string(healthscope.Pending), string(healthscope.Terminating), string(fleet.Connecting), string(fleet.MonitorStale):
		return yellow + text + end
	case string(healthscope.Unknown), string(corev1alpha2.UnknownHealth):
		return magenta + text + end
	}
	return red + text + end // Failed, NotPresent, unhealthy, and clusters that cannot be seen.
}

// printable returns a text as one line and cell: text of kubeconfigs and annotations must not control a terminal.
func printable(text string) string { return healthscope.Clean(text) }
