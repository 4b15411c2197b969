package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzParseQuery asserts that parseQuery returns the given values of known parameters, or a short error with the status code 400.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "b=%C3%A9&a=", "a=1", "a=1&b=2", "a=1&a=2", "c=3", "a;b", "%", "a=%zz", "&&", "=", strings.Repeat("x", 9000)} {
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

// TestOnlyThisMachineIsAnsweredWithoutAToken asserts that a web page whose host name resolves to the loopback address can read
// nothing.
func TestOnlyThisMachineIsAnsweredWithoutAToken(t *testing.T) {
	c := newContract(t)
	open := NewHandler(Options{Scopes: manyScopes()})
	guarded := NewHandler(Options{Scopes: manyScopes(), Guard: rights{may: map[string][]Access{"all": nil}}})
	hosts := map[string]bool{
		"localhost": true, "localhost:8083": true, "LocalHost.": true, "127.0.0.1:8083": true, "127.9.9.9": true, "[::1]:8083": true, "[::1]": true, "[::ffff:127.0.0.1]:1": true,
		"evil.example": false, "evil.example:8083": false, "localhost.evil.example": false, "10.0.0.1:8083": false, "127.0.0.1.evil.example": false, "[fe80::1]:8083": false, "": true, "0.0.0.0": false,
	}
	for host, want := range hosts {
		for _, target := range []string{"/scopes", "/scopes?watch=true", "/openapi.json", "/nope"} {
			r := httptest.NewRequestWithContext(stopping(t.Context()), http.MethodGet, target, nil)
			r.Host = host
			got := serve(open, r)
			if refused := got.Code == http.StatusMisdirectedRequest; refused == want {
				t.Errorf("host %q, %s: status %d: %s", host, target, got.Code, got.Body)
			}
			if !want {
				c.checkNamed(t, "MisdirectedRequest", got)
				checkProblem(t, got.Body.Bytes(), http.StatusMisdirectedRequest, "only requests for localhost or a loopback address are answered")
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/scopes", nil)
		r.Host, r.Header = host, bearer("all")
		if got := serve(guarded, r); got.Code != http.StatusOK {
			t.Errorf("host %q with a token: status %d", host, got.Code)
		}
	}
}
