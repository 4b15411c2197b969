// Package fields writes the tables of fields in the documentation: those of our kinds from the schemas in their CRDs, those of the configuration
// file from config/settings. What a field means is said once, in the comment of the Go type, and the tables have the order of the types.
package fields

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var (
	// block matches a generated table on a page. Its second group is the name of the table.
	block = regexp.MustCompile(`(?s)(<!-- generated fields (\w+): do not edit; make generate -->\n).*?(<!-- end -->)`)
	// docs matches the address of a page of the documentation. Comments have it in full, for readers of kubectl explain.
	docs = regexp.MustCompile(`https://github\.com/healthscope/healthscope/blob/main/config/docs/([\w-]+\.md)(#[\w-]+)?`)
)

// tables are the tables of a page, by name.
type tables map[string]string

// update returns the page with its tables. It fails when the page lacks one of them, or has a place for one that does not exist.
func update(page string, t tables) (string, error) {
	placed := map[string]bool{}
	page = block.ReplaceAllStringFunc(page, func(old string) string {
		match := block.FindStringSubmatch(old)
		placed[match[2]] = true
		return match[1] + t[match[2]] + match[3]
	})
	for name := range placed {
		if _, ok := t[name]; !ok {
			return "", fmt.Errorf("there are no fields %q", name)
		}
	}
	for name := range t {
		if !placed[name] {
			return "", fmt.Errorf("there is no place for the fields %q: add <!-- generated fields %s: do not edit; make generate --> and <!-- end -->", name, name)
		}
	}
	return page, nil
}

// line returns a line of a table.
func line(cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// header returns the first two lines of a table.
func header(cells ...string) string {
	return line(cells...) + "|" + strings.Repeat("---|", len(cells)) + "\n"
}

// meaning returns what a comment says of a field, without the name of the field that it begins with, and its bounds.
func meaning(name, comment string, bounds []string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		for _, verb := range []string{"is ", "are ", "says ", "say "} {
			rest = strings.TrimPrefix(rest, verb)
		}
		text = capital(rest)
	}
	text = docs.ReplaceAllString(text, "[$1]($1$2)")
	if len(bounds) > 0 {
		text = strings.TrimSpace(text + " " + capital(strings.Join(bounds, ", ")) + ".")
	}
	return text
}

func capital(text string) string {
	runes := []rune(text)
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	return string(runes)
}

// code returns words as they are written in a table.
func code(words ...string) string { return "`" + strings.Join(words, "`, `") + "`" }
