package main

import "testing"

func TestMeaning(t *testing.T) {
	const address = "https://github.com/healthscope/healthscope/blob/main/config/docs/"
	for _, c := range []struct {
		name, comment, want string
	}{
		{"name", "name is the name.", "The name."},
		{"names", "names are names\nof clusters.", "Names of clusters."},
		{"reason", "reason says why.", "Why."},
		{"culprit", "culprits say why.", "culprits say why."},
		{"state", "See " + address + "health.md#states, and " + address + "reasons.md.", "See [health.md](health.md#states), and [reasons.md](reasons.md)."},
	} {
		if got := meaning(c.name, c.comment); got != c.want {
			t.Errorf("%s becomes %q, want %q", c.comment, got, c.want)
		}
	}
}
