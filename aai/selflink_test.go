package aai_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
)

func TestScopeNamespace(t *testing.T) {
	cases := map[string]struct {
		selflink, want string
		found          bool
	}{
		"of a scope that is called like": {"http://x/scopes/scopes/scopes", "scopes", true},
		"of the whole cluster":           {"https://status.example/scopes", "", false},
		"of another program":             {"http://so-cnf-adapter:8090/api/cnf-adapter/v1/instance/x/query?Kind=Pod", "", false},
		"without a name":                 {"http://x/scopes/vfw/", "", false},
		"without a namespace":            {"http://x/scopes//fw", "", false},
		"that cannot be decoded":         {"http://x/scopes/%zz/fw", "", false},
		"empty":                          {"", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := aai.Document{Selflink: c.selflink}.ScopeNamespace()
			if got != c.want || found != c.found {
				t.Errorf("got %q, %t; want %q, %t", got, found, c.want, c.found)
			}
		})
	}
}

func TestScopeNamespaceReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom([]string{"http://x", "https://status.example:8443/", ""}).Draw(t, "base")
		namespace, name := rapid.StringN(1, 20, -1).Draw(t, "namespace"), rapid.StringN(1, 20, -1).Draw(t, "name")
		got, found := aai.Document{Selflink: aai.ScopeSelflink(base, namespace, name)}.ScopeNamespace()
		if !found || got != namespace {
			t.Fatalf("got %q, %t; want %q", got, found, namespace)
		}
		if got, found := (aai.Document{Selflink: aai.ScopesSelflink(base, namespace)}).ScopeNamespace(); found {
			t.Fatalf("got %q of a link that names no scope", got)
		}
	})
}
