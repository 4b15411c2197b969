package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWellFormed(t *testing.T) {
	tests := map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/a/": true, "/a%2F..%2Fb": true, "/...": true,
		"": false, "*": false, "a": false, "//": false, "/a//b": false, "/a//": false, "/.": false, "/./": false, "/a/..": false, "/../a": false,
	}
	for path, want := range tests {
		if got := wellFormed(path); got != want {
			t.Errorf("wellFormed(%q) = %t, want %t", path, got, want)
		}
	}
}

func TestParseQuery(t *testing.T) {
	got, err := parseQuery("b=%C3%A9&a=", []string{"a", "b", "c"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(url.Values{"a": {""}, "b": {"é"}}, got); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

// FuzzParseQuery asserts that what is read is what was given, and that a refusal is short and one the caller is to blame for.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "a=1", "a=1&b=2", "a=1&a=2", "c=3", "a;b", "%", "a=%zz", "&&", "=", strings.Repeat("x", 9000)} {
		f.Add(seed)
	}
	known := []string{"a", "b"}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := parseQuery(raw, known, false)
		if err != nil {
			if p := problemOf(err, &url.URL{}); p.Status != 400 || len(p.Detail) > 10*maxEcho {
				t.Errorf("parseQuery(%q) is refused with %+v", raw, p)
			}
			return
		}
		want, err := url.ParseQuery(raw)
		if err != nil || len(want) != len(query) {
			t.Fatalf("parseQuery(%q) = %v, of %v (%v)", raw, query, want, err)
		}
		for name, values := range query {
			if !slices.Contains(known, name) || len(values) != 1 || !slices.Equal(want[name], values) {
				t.Errorf("parseQuery(%q) has %q = %q, of %q", raw, name, values, want[name])
			}
		}
	})
}
