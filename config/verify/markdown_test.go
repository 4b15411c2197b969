package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the source tree, and docs the folder of the reference documentation, relative to this package.
const (
	root = "../.."
	docs = "../docs"
)

// page is a page of the documentation, or a part of one.
type page struct{ name, text string }

// row is a row of a table: its cells by the headings of their columns.
type row map[string]string

var (
	heading  = regexp.MustCompile(`^(#+) (.*)$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// readPage reads a page of the reference documentation.
func readPage(t *testing.T, name string) page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(docs, name))
	if err != nil {
		t.Fatalf("cannot read a page of the documentation: %v", err)
	}
	return page{name: "config/docs/" + name, text: string(data)}
}

// section returns the part of a page below a heading, up to the next heading of its level or above.
func (p page) section(t *testing.T, title string) page {
	t.Helper()
	level := 0
	var found []string
	for _, l := range p.lines() {
		match := heading.FindStringSubmatch(l.text)
		switch {
		case l.fenced || match == nil:
		case level > 0 && len(match[1]) <= level:
			return page{p.name, strings.Join(found, "\n")}
		case level == 0 && match[2] == title:
			level = len(match[1])
		}
		if level > 0 {
			found = append(found, l.text)
		}
	}
	if level == 0 {
		t.Fatalf("%s: add a section %q", p.name, title)
	}
	return page{p.name, strings.Join(found, "\n")}
}

// line is a line of a page. fenced reports whether it belongs to a block of code, including the first and the last line of the
// block.
type line struct {
	text   string
	fenced bool
}

func (p page) lines() []line {
	var lines []line
	open := false
	for text := range strings.SplitSeq(p.text, "\n") {
		edge := strings.HasPrefix(text, "```")
		lines = append(lines, line{text: text, fenced: open || edge})
		open = open != edge
	}
	return lines
}

// rows returns the rows of all tables on the page whose first column has the given heading.
func (p page) rows(t *testing.T, first string) []row {
	t.Helper()
	var rows []row
	var headings []string
	for _, l := range p.lines() {
		if l.fenced || !strings.HasPrefix(l.text, "|") {
			headings = nil
			continue
		}
		cells := cellsOf(l.text)
		switch {
		case headings == nil:
			headings = cells
		case strings.Trim(l.text, "|-: ") == "" || headings[0] != first:
		case len(cells) != len(headings):
			t.Errorf("%s: a row has %d cells under %d headings: %s", p.name, len(cells), len(headings), l.text)
		default:
			r := row{}
			for i, h := range headings {
				r[h] = cells[i]
			}
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s: add a table whose first column is %q", p.name, first)
	}
	return rows
}

func cellsOf(text string) []string {
	const bar = "\x00"
	text = strings.ReplaceAll(strings.Trim(strings.TrimSpace(text), "|"), `\|`, bar)
	cells := strings.Split(text, "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	return cells
}

// fences returns the blocks of code in a language.
func (p page) fences(language string) []string {
	var blocks []string
	inside, wanted := false, false
	for _, l := range p.lines() {
		edge := strings.HasPrefix(l.text, "```")
		switch {
		case edge && inside:
			inside, wanted = false, false
		case edge:
			inside, wanted = true, l.text == "```"+language
			if wanted {
				blocks = append(blocks, "")
			}
		case wanted:
			blocks[len(blocks)-1] += l.text + "\n"
		}
	}
	return blocks
}

// codes returns all text in a cell that is formatted as code.
func codes(cell string) []string {
	var found []string
	for _, match := range codeSpan.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

// code returns the first text in a cell that is formatted as code, or an empty string.
func code(cell string) string {
	if found := codes(cell); len(found) > 0 {
		return found[0]
	}
	return ""
}

// firstCodes returns all text in the given column of rows that is formatted as code.
func firstCodes(rows []row, column string) []string {
	var found []string
	for _, r := range rows {
		found = append(found, codes(r[column])...)
	}
	return found
}

// documents fails the test for names that a page lacks, has twice, or should not have.
func (p page) documents(t *testing.T, what string, want, got []string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s: add a row for the %s %q", p.name, what, name)
		}
	}
	seen := map[string]bool{}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s: remove the row of %q: there is no such %s", p.name, name, what)
		} else if seen[name] {
			t.Errorf("%s: remove the second row of the %s %q", p.name, what, name)
		}
		seen[name] = true
	}
}
