package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/healthscope/healthscope/config/settings"
)

// configurationTables returns the tables of the configuration file: one with the fields outside of sections, and one for each
// section. root is the root of the source tree.
func configurationTables(root string) (map[string]table, error) {
	all, err := settings.All(root)
	if err != nil {
		return nil, err
	}
	tables := map[string]table{}
	for _, s := range all {
		heading, within, found := strings.Cut(s.Path, ".")
		heading, name := strings.TrimSuffix(heading, "[]"), within[strings.LastIndex(within, ".")+1:]
		if !found {
			heading, name = "Fields", s.Path
		}
		text, bounds := meaning(name, s.Comment), boundsOf(s)
		if text == "" && len(s.Values) != 1 { // A field with a single value needs no description.
			return nil, fmt.Errorf("cannot say what %q means: %s has no comment", s.Path, s.Field)
		}
		if tables[heading] == nil {
			tables[heading] = table{{"field", "type", "default", "meaning"}}
		}
		tables[heading] = append(tables[heading], []string{code(s.Path), bounded(string(s.Kind), bounds), defaultOf(s), text})
	}
	return tables, nil
}

func defaultOf(s settings.Setting) string {
	switch {
	case s.Required:
		return "required"
	case len(s.Default) == 0:
		return "none"
	default:
		return code(s.Default...)
	}
}

func boundsOf(s settings.Setting) []string {
	switch {
	case len(s.Values) == 1:
		return []string{"only " + code(s.Values...)}
	case len(s.Values) > 1:
		return []string{"one of " + code(s.Values...)}
	case s.Kind == settings.Integer && s.Maximum == math.MaxInt32:
		return []string{fmt.Sprintf("at least %d", s.Minimum)}
	case s.Kind == settings.Integer:
		return []string{fmt.Sprintf("from %d to %d", s.Minimum, s.Maximum)}
	default:
		return nil
	}
}

// address matches the address of a page of the documentation. Comments contain full addresses for readers of kubectl explain.
var address = regexp.MustCompile(`https://github\.com/healthscope/healthscope/blob/main/config/docs/([\w-]+\.md)(#[\w-]+)?`)

// meaning returns the text of a field's comment, without the name of the field at its beginning.
func meaning(name, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		for _, verb := range []string{"is ", "are ", "says ", "say "} {
			rest = strings.TrimPrefix(rest, verb)
		}
		text = capital(rest)
	}
	return address.ReplaceAllString(text, "[$1]($1$2)")
}

func capital(text string) string {
	runes := []rune(text)
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	return string(runes)
}
