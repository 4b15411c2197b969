package main

import "testing"

func TestMeaning(t *testing.T) {
	const address = "https://github.com/healthscope/healthscope/blob/main/config/docs/"
	for _, c := range []struct {
		name, comment string
		bounds        []string
		want          string
	}{
		{"name", "name is the name.", nil, "The name."},
		{"names", "names are names\nof clusters.", []string{"required", "at most 3 entries"}, "Names of clusters. Required, at most 3 entries."},
		{"reason", "reason says why.", nil, "Why."},
		{"culprit", "culprits say why.", nil, "culprits say why."},
		{"state", "See " + address + "health.md#states, and " + address + "reasons.md.", nil, "See [health.md](health.md#states), and [reasons.md](reasons.md)."},
		{"kind", "", []string{"always `Configuration`"}, "Always `Configuration`."},
	} {
		if got := meaning(c.name, c.comment, c.bounds); got != c.want {
			t.Errorf("%s becomes %q, want %q", c.comment, got, c.want)
		}
	}
}
