package healthscope_test

import (
	"testing"
	"time"

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

func TestCleanTime(t *testing.T) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := healthscope.CleanTime(far); !got.IsZero() {
		t.Errorf("CleanTime(%s) = %s, want the zero time", far, got)
	}
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	if got := healthscope.CleanTime(now); !got.Equal(now) {
		t.Errorf("CleanTime(%s) = %s", now, got)
	}
}

func TestShorten(t *testing.T) {
	cases := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":         {"ok", 5, "ok"},
		"just":          {"abcde", 5, "abcde"},
		"long":          {"abcdef", 5, "ab..."},
		"within a rune": {"aääääää", 6, "aä..."},
		"dots alone":    {"abcdef", 3, "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := healthscope.Shorten(tc.text, tc.limit); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestCut(t *testing.T) {
	cases := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"just":          {"abcde", 5, "abcde"},
		"long":          {"abcdef", 5, "abcde"},
		"within a rune": {"aää", 4, "aä"},
		"nothing":       {"ä", 1, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := healthscope.Cut(tc.text, tc.limit); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
