package healthscope_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
)

func TestClean(t *testing.T) {
	for from, want := range map[string]string{
		"":                            "",
		"0 of 2 replicas are ready":   "0 of 2 replicas are ready",
		"Störung, 障害, عطل":            "Störung, 障害, عطل",
		"a\x1b[31mred":                "a [31mred",
		"a\u009b31mred":               "a 31mred",
		"line 1\r\nline 2\u2028three": "line 1 line 2 three",
		"user\u202egpj.exe":           "user gpj.exe",
		"a\u2066b\u2069c\u200ed":      "a b c d",
		"bad\xffbyte":                 "bad\uFFFDbyte",
	} {
		if got := healthscope.Clean(from); got != want {
			t.Errorf("Clean(%q) = %q, want %q", from, got, want)
		}
	}
}

// TestCleanResult asserts that all texts and times of a result are cleaned, and that its owner and labels, which others may read, are not changed.
func TestCleanResult(t *testing.T) {
	filled := func(text string, at time.Time) healthscope.Result {
		return healthscope.Result{
			Key: healthscope.Key{Group: text, Kind: text, Namespace: text, Name: text}, Version: text, UID: text, Reason: healthscope.Reason(text), Message: text,
			Since: at, Owner: &healthscope.Owner{Group: text, Kind: text, Name: text}, Labels: map[string]string{text: "value", "name": text}, Progress: &healthscope.Progress{At: at},
		}
	}
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	before, got, clean := filled("a\x1bb", far), filled("a\x1bb", far), filled("a b", noon)
	owner, labels := got.Owner, got.Labels
	got.Clean()
	clean.Clean()
	if diff := cmp.Diff(filled("a b", time.Time{}), got) + cmp.Diff(filled("a b", noon), clean); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before.Owner, owner) + cmp.Diff(before.Labels, labels); diff != "" {
		t.Errorf("owner or labels have changed:\n%s", diff)
	}
}

func TestCutAndShorten(t *testing.T) {
	cases := map[string]struct {
		text           string
		limit          int
		cut, shortened string
	}{
		"short":         {"ok", 5, "ok", "ok"},
		"just":          {"abcde", 5, "abcde", "abcde"},
		"long":          {"abcdef", 5, "abcde", "ab..."},
		"within a rune": {"aääääää", 6, "aää", "aä..."},
		"dots alone":    {"abcdef", 3, "abc", "..."},
		"a rune alone":  {"äää", 3, "ä", "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := healthscope.Cut(tc.text, tc.limit); got != tc.cut {
				t.Errorf("Cut: want %q, got %q", tc.cut, got)
			}
			if got := healthscope.Shorten(tc.text, tc.limit); got != tc.shortened {
				t.Errorf("Shorten: want %q, got %q", tc.shortened, got)
			}
		})
	}
}
