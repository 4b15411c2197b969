package main

import (
	"regexp"
	"strings"
	"unicode"
)

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
