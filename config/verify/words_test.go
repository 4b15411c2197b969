package verify

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// private maps the usual terms of the field to words that readers of the Kubernetes documentation do not expect. These words
// must not occur in text that users read.
var private = map[string]*regexp.Regexp{
	"name the actor":              regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever)\b`),
	"again, or restart":           regexp.MustCompile(`(?i)\banew\b`),
	"continues, keeps":            regexp.MustCompile(`(?i)\b(go|goes|going|went) on\b`),
	"indefinitely":                regexp.MustCompile(`(?i)\bfor ever\b`),
	"reports whether":             regexp.MustCompile(`(?i)\bsays? whether\b`),
	"is reported, is known":       regexp.MustCompile(`(?i)\b(told|untold|tell(s|ing)? of)\b`),
	"desired":                     regexp.MustCompile(`(?i)\bwish(es|ed)?\b`),
	"repair, fix, mitigation":     regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`),
	"automatically":               regexp.MustCompile(`(?i)\bby (itself|themselves)\b`),
	"health tracker, contact":     regexp.MustCompile(`(?i)\bpulses?\b`),
	"co-writer, co-owner":         regexp.MustCompile(`(?i)\brivals?\b`),
	"write state, sync status":    regexp.MustCompile(`(?i)\bledgers?\b`),
	"burst":                       regexp.MustCompile(`(?i)\brush(es)?\b`),
	"rejected":                    regexp.MustCompile(`(?i)\bdead[ -]letters?\b`),
	"half-open probe, test":       regexp.MustCompile(`(?i)\btrials?\b`),
	"limiter, limit":              regexp.MustCompile(`(?i)\bbrakes?\b`),
	"error, fault":                regexp.MustCompile(`(?i)\btroubles?\b`),
	"unhealthy":                   regexp.MustCompile(`(?i)\b(ails?|ailing)\b`),
	"muted, idle":                 regexp.MustCompile(`(?i)\b(quiet|silenced)\b`),
	"debounce, confirmed, trusts": regexp.MustCompile(`(?i)\b(doubts?|believe[sd]?)\b`),
	"timeout, grace period":       regexp.MustCompile(`(?i)\b(patien(ce|t)|breathers?|slack)\b`),
	"stale, not seen":             regexp.MustCompile(`(?i)\b(unseen|far-?seeing)\b`),
	"discovery, list":             regexp.MustCompile(`(?i)\bcatalogues?\b`),
	"placeholder, consumer":       regexp.MustCompile(`(?i)\b(recollections?|takers?|stand-ins?|keepers?|shelf|shelves)\b`),
	"close, drain":                regexp.MustCompile(`(?i)\b(hangs? up|lingers?)\b`),
	"observation, counter":        regexp.MustCompile(`(?i)\b(sightings?|tally|tallies|provers?)\b`),
	"trim, redact, ownership":     regexp.MustCompile(`(?i)\b(abridge[sd]?|kinship|witness(es)?)\b`),
	"terminal":                    regexp.MustCompile(`(?i)\bhopeless\b`),
	"operation, scenario":         regexp.MustCompile(`(?i)\b(deeds?|tales?|thief|thieves|stubborn|janitors?|hastens?)\b`),
	"strict, retrying":            regexp.MustCompile(`(?i)\bcareful(ly)?\b`),
	"result, state":               regexp.MustCompile(`(?i)\bverdicts?\b`),
	"a verb in plain English":     regexp.MustCompile(`(?i)\b(heeds?|damps?|revives?)\b`),
}

// anyPrivate matches any of these words. Most text has none of them, so that one match is enough.
var anyPrivate = sync.OnceValue(func() *regexp.Regexp {
	var all []string
	for _, words := range private {
		all = append(all, words.String())
	}
	return regexp.MustCompile(strings.Join(all, "|"))
})

// readByUsers are files besides the pages with text for users: kubectl explain shows the CRDs, and Prometheus shows the alerts.
var readByUsers = []string{
	"config/crd/*_*.yaml", "config/prometheus/rules.yaml", "config/grafana/*.json", "healthscope/api/openapi.json", "config/tools/krew/plugin.yaml",
	"charts/healthscope/*.yaml", "charts/healthscope/*.json", "charts/healthscope/templates/NOTES.txt",
}

// TestPagesUsePlainWords checks every page, except for code, and the files in readByUsers.
func TestPagesUsePlainWords(t *testing.T) {
	for _, p := range allPages(t) {
		for n, l := range p.lines() {
			if !l.fenced {
				findPrivate(t, fmt.Sprintf("%s:%d", p.name, n+1), l.text)
			}
		}
	}
	for _, pattern := range readByUsers {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no file %q: %v", pattern, err)
		}
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(readFile(t, name), "\n") {
				findPrivate(t, fmt.Sprintf("%s:%d", name, n+1), line)
			}
		}
	}
}

// TestTheProgramUsesPlainWords checks the strings in the source, which are used in help, messages, events and logs.
func TestTheProgramUsesPlainWords(t *testing.T) {
	inspect(sources(t, "aai", "apis", "controllers", "healthscope", "config/tables", "e2e/demo", "e2e/env", "e2e/installation", "e2e/story"), func(l *ast.BasicLit) {
		if text, ok := text(l); ok {
			findPrivate(t, fmt.Sprintf("%.100q", text), text)
		}
	})
}

// TestPagesHaveTheHeadingsOfTheField asserts that pages have the usual headings, so that readers find a subject under the
// expected name.
func TestPagesHaveTheHeadingsOfTheField(t *testing.T) {
	ours := regexp.MustCompile(`(?i)^(#+ |\*\*)(look|mend|what counts|what goes wrong|what can go wrong|what happens when .*|when .* is away)(\.\*\*|$)`)
	for _, p := range allPages(t) {
		for n, l := range p.lines() {
			if found := ours.FindString(l.text); !l.fenced && found != "" {
				t.Errorf("%s:%d: name it Failure modes, Diagnosis, Mitigation or Counted resources: %s", p.name, n+1, found)
			}
		}
	}
}

// findPrivate fails the test if a text has a private word outside of code.
func findPrivate(t *testing.T, where, text string) {
	t.Helper()
	text = codeSpan.ReplaceAllString(text, "")
	if !anyPrivate().MatchString(text) {
		return
	}
	for better, words := range private {
		if found := words.FindString(text); found != "" {
			t.Errorf("%s: write instead of %q: %s", where, found, better)
		}
	}
}
