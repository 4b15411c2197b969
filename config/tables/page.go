package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A table stands between these two lines.
const (
	begin = "<!-- generated: do not edit; make generate -->"
	end   = "<!-- end -->"
)

// table is a table of a page: its headings, and its rows.
type table [][]string

// String returns the table as Markdown.
func (t table) String() string {
	var text strings.Builder
	for i, row := range t {
		text.WriteString("|")
		for _, cell := range row {
			text.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
		text.WriteString("\n")
		if i == 0 {
			text.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return text.String()
}

// code returns words as code, and none as they are.
func code(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "`" + word + "`"
	}
	return strings.Join(quoted, ", ")
}

// fill returns a page with the given tables, by the heading that each stands below.
func fill(page string, tables map[string]table) (string, error) {
	var out strings.Builder
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
			return "", fmt.Errorf("there is no table for below %q, or it is there twice", title)
		}
		delete(missing, title)
		inside = true
		out.WriteString("\n" + t.String() + "\n")
	}
	if inside {
		return "", errors.New("the last table has no end")
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("these headings have no table below them: %q", slices.Sorted(maps.Keys(missing)))
	}
	return out.String(), nil
}
