package commands

import (
	"fmt"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// statusView determines what is printed of a status, and how.
type statusView struct {
	target target
	format string
	// terminal is true if the output is a terminal, and colour if it may have colors.
	terminal, colour bool
}

// doesNotExist follows the name of a scope that has been deleted.
const doesNotExist = " does not exist any more\n"

// page is the content of a response in a form for printing.
type page struct {
	health healthscope.Health
	lines  []textLine
	tables []table
	// notes are printed below the tables. notedTimes are the times that they mention.
	notes, notedTimes []string
}

// textLine is a line of text, and the state that determines its color.
type textLine struct{ text, state string }

// text returns the page as it is printed.
func (g *page) text(colour bool) string {
	var b strings.Builder
	for _, l := range g.lines {
		text := l.text
		if colour {
			text = colorize(text, l.state)
		}
		fmt.Fprintln(&b, text)
	}
	for _, t := range g.tables {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(t.render(colour))
	}
	if len(g.notes) > 0 && b.Len() > 0 {
		b.WriteString("\n")
	}
	for _, note := range g.notes {
		fmt.Fprintln(&b, "! "+note)
	}
	return b.String()
}

// addTable adds a table, unless it has no rows.
func (g *page) addTable(t table) {
	if len(t.rows) > 0 {
		g.tables = append(g.tables, t)
	}
}

func (g *page) notef(format string, args ...any) {
	g.notes = append(g.notes, printable(fmt.Sprintf(format, args...)))
}

func (g *page) linef(state, format string, args ...any) {
	g.lines = append(g.lines, textLine{printable(fmt.Sprintf(format, args...)), state})
}
