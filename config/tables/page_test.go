package main

import (
	"strings"
	"testing"
)

const page = `# Colours

What is said stays.

<!-- generated: do not edit; make generate -->
old
<!-- end -->

Also below.

## More
`

func TestATableTakesThePlaceOfTheOneBefore(t *testing.T) {
	tables := map[string]table{"Colours": {{"name", "like"}, {"red", "fire|blood"}}}
	want := strings.Replace(page, "old\n", "\n| name | like |\n|---|---|\n| red | fire\\|blood |\n\n", 1)
	for _, before := range []string{page, want} {
		if got, err := fill(before, tables); err != nil || string(got) != want {
			t.Errorf("got %v and %s, want %s", err, got, want)
		}
	}
}

func TestEveryTableHasItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		page   string
		tables map[string]table
		want   string
	}{
		"a table without a place": {page, map[string]table{"Colours": {{"name"}}, "More": {{"name"}}}, `"More"`},
		"a place without a table": {page, nil, `"Colours"`},
		"a table without an end":  {strings.Replace(page, end, "", 1), map[string]table{"Colours": {{"name"}}}, "no end"},
	} {
		if _, err := fill(c.page, c.tables); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %s", name, err, c.want)
		}
	}
}

func TestALongCellKeepsItsFirstSentences(t *testing.T) {
	sentence := "A sentence of `fifty.five` bytes, which is no long one."
	long := strings.TrimSuffix(strings.Repeat(sentence+" ", 5), " ")
	cell := strings.Repeat(sentence+" ", 2) + sentence
	want := "| field | meaning |\n|---|---|\n| `a` | " + cell + " |\n| `b` | short |\n\nDetails:\n\n- `a`: " + sentence + " " + sentence + "\n"
	if got := (table{{"field", "meaning"}, {"`a`", long}, {"`b`", "short"}}).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, whole := range []string{strings.Repeat("x", 300) + ".", long[:len(sentence)*3+2]} {
		if short, rest := atAGlance(whole); short != whole || rest != "" {
			t.Errorf("%q is split into %q and %q", whole, short, rest)
		}
	}
}
