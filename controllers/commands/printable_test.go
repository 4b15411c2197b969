package commands

import "testing"

func TestNothingThatSteersATerminalIsPrinted(t *testing.T) {
	const evil = "a\x1b[31mb\u009bc\u202ed\ne"
	const want = "a [31mb c d e"
	if got := printable(evil); got != want {
		t.Errorf("status and clusters print %q, want %q", got, want)
	}
	if got := cell(evil); got != want {
		t.Errorf("explain prints %q, want %q", got, want)
	}
}
