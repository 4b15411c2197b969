package main

import (
	"regexp"
	"strings"
	"unicode"
)

// address matches the address of a page of the documentation. Comments have it in full, for readers of kubectl explain.
var address = regexp.MustCompile(`https://github\.com/healthscope/healthscope/blob/main/config/docs/([\w-]+\.md)(#[\w-]+)?`)

// meaning returns what a comment says of a field, without the name of the field that it begins with.
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
