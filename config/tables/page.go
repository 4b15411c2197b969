package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A generated table stands between these two lines.
const (
	begin = "<!-- generated: do not edit; make generate -->"
	end   = "<!-- end -->"
)

// cellSize is the maximum size of a last cell, in bytes, that is not shortened.
const cellSize = 200

// sentenceEnd matches the end of a sentence that is followed by another one.
var sentenceEnd = regexp.MustCompile("[.] [A-Z`]")

// table is a table of a page: its headings and its rows. The first cell of a row names the subject of the row.
type table [][]string

// String returns the table as Markdown. If a last cell is long, the table has its first sentences, and a list after the table
// has the others.
func (t table) String() string {
	var text, details strings.Builder
	for i, row := range t {
		short, rest := atAGlance(row[len(row)-1])
		if rest != "" {
			fmt.Fprintf(&details, "- %s: %s\n", row[0], rest)
		}
		row = append(slices.Clone(row[:len(row)-1]), short)
		text.WriteString("|")
		for _, cell := range row {
			text.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
		text.WriteString("\n")
		if i == 0 {
			text.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	if details.Len() > 0 {
		text.WriteString("\nDetails:\n\n" + details.String())
	}
	return text.String()
}

// atAGlance splits a text into the first sentences that fit into cellSize, but at least one, and the rest.
func atAGlance(text string) (short, rest string) {
	if len(text) <= cellSize {
		return text, ""
	}
	at := len(text)
	for i, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		if next := end[0] + 1; i == 0 || next <= cellSize {
			at = next
		}
	}
	return text[:at], strings.TrimSpace(text[at:])
}

// code returns words formatted as code, separated by commas.
func code(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "`" + word + "`"
	}
	return strings.Join(quoted, ", ")
}

// fill returns a page with the given tables. Each is placed below the heading that is its key.
func fill(page string, tables map[string]table) ([]byte, error) {
	var out bytes.Buffer
	missing := maps.Clone(tables)
	title, fenced, inside := "", false, false
	for line := range strings.Lines(page) {
		text := strings.TrimSuffix(line, "\n")
		if inside && text != end {
			continue
		}
		inside = false
		out.WriteString(line)
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
		}
		if marks := strings.TrimLeft(text, "#"); !fenced && marks != text {
			title = strings.TrimSpace(marks)
		}
		if text != begin {
			continue
		}
		t, ok := missing[title]
		if !ok {
			return nil, fmt.Errorf("there is no table for below %q, or it is there twice", title)
		}
		delete(missing, title)
		inside = true
		out.WriteString("\n" + t.String() + "\n")
	}
	if inside {
		return nil, errors.New("the last table has no end")
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("these headings have no table below them: %q", slices.Sorted(maps.Keys(missing)))
	}
	return out.Bytes(), nil
}
