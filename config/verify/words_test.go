package verify

import (
	"fmt"
	"go/ast"
	"regexp"
	"testing"
)

// private are words that readers of the Kubernetes documentation do not expect, with what the field says. They must not occur in
// pages, and not in the strings of the program, which become help, messages, events and log lines.
var private = map[string]*regexp.Regexp{
	"name the actor":          regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever)\b`),
	"again, or restart":       regexp.MustCompile(`(?i)\banew\b`),
	"continues, keeps":        regexp.MustCompile(`(?i)\b(go|goes|going|went) on\b`),
	"indefinitely":            regexp.MustCompile(`(?i)\bfor ever\b`),
	"reports whether":         regexp.MustCompile(`(?i)\bsays? whether\b`),
	"is reported, is known":   regexp.MustCompile(`(?i)\b(told|untold)\b`),
	"desired":                 regexp.MustCompile(`(?i)\bwish(es|ed)?\b`),
	"repair, fix":             regexp.MustCompile(`(?i)\bmend(s|ed)?\b`),
	"automatically":           regexp.MustCompile(`(?i)\bby itself\b`),
	"a word of the field":     regexp.MustCompile(`(?i)\b(pulse|rivals?|ledger|rush|dead letters?)\b`),
	"a verb in plain English": regexp.MustCompile(`(?i)\b(heeds?|is told of)\b`),
}

// TestPagesUsePlainWords reads every page, without its code.
func TestPagesUsePlainWords(t *testing.T) {
	for _, p := range allPages(t) {
		for n, l := range p.lines() {
			if !l.fenced {
				findPrivate(t, fmt.Sprintf("%s:%d", p.name, n+1), l.text)
			}
		}
	}
}

// TestTheProgramUsesPlainWords reads the strings in its source, which become help, messages, events and log lines.
func TestTheProgramUsesPlainWords(t *testing.T) {
	inspect(sources(t, "aai", "apis", "controllers", "healthscope", "config/tables", "e2e/demo", "e2e/env", "e2e/story"), func(l *ast.BasicLit) {
		if text, ok := text(l); ok {
			findPrivate(t, fmt.Sprintf("%.100q", text), text)
		}
	})
}

// findPrivate fails when a text has a private word outside of code.
func findPrivate(t *testing.T, where, text string) {
	t.Helper()
	for better, words := range private {
		if found := words.FindString(codeSpan.ReplaceAllString(text, "")); found != "" {
			t.Errorf("%s: write instead of %q: %s", where, found, better)
		}
	}
}
