package commands

import "testing"

func TestPrintableRemovesControlCharacters(t *testing.T) {
	const evil = "a\x1b[31mb\u009bc\u202ed\ne"
	if got, want := printable(evil), "a [31mb c d e"; got != want {
		t.Errorf("printed as %q, want %q", got, want)
	}
}
