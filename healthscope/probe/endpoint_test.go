package probe_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// parseEndpoint returns the error of an endpoint, or nil if it is valid.
func parseEndpoint(endpoint string) error {
	_, err := probe.Parse(&corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: endpoint})
	return err
}

func TestEndpointsThatCanBeUsed(t *testing.T) {
	for _, endpoint := range []string{"/", "/health", "/v1/health", "/health/", "/.well-known/ready", "/a..b", "/~me/x_y-z", "/" + strings.Repeat("a", 255)} {
		if err := parseEndpoint(endpoint); err != nil {
			t.Errorf("%q is refused: %v", endpoint, err)
		}
	}
}

func TestEndpointsThatCannotBeUsed(t *testing.T) {
	for want, endpoints := range map[string][]string{
		"is missing":   {""},
		"is no path":   {"health", ".status", "http://10.0.0.1/", "127.0.0.1:8080/health", "@169.254.169.254/"},
		"two slashes":  {"//127.0.0.1/", "/a//b"},
		`segment ".."`: {"/..", "/../../nodes", "/a/../../b", "/a/.."},
		`segment "."`:  {"/./a"},
		"characters": {
			"/%2e%2e/secrets", "/%2f%2f127.0.0.1", "/a%2f..%2fb", "/a?url=http://127.0.0.1", "/a#b", "/@127.0.0.1", "/a@b", "/a b", "/a\r\nHost: x", "/a\x00",
			`/a\..\b`, "/[::ffff:127.0.0.1]/", "/ä", "/\xff", "/..;/manager",
		},
		"257 bytes": {"/" + strings.Repeat("a", 256)},
	} {
		for _, endpoint := range endpoints {
			field := "probe-endpoint: "
			if endpoint != "" {
				field += fmt.Sprintf("%.70q ", endpoint)
			}
			if err := parseEndpoint(endpoint); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), field) {
				t.Errorf("%q: %v, want one that says %q of %q", endpoint, err, want, field)
			}
		}
	}
}

// FuzzEndpoint asserts that an accepted endpoint is unambiguous: no part of it is escaped, removed or read as another host or
// query, however often it is parsed.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{"/health", "/a/../b", "//h/", "/%2f", "/@h", "/./", "/a//", "/a?b", "http://h/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		if parseEndpoint(endpoint) != nil {
			return
		}
		if clean := path.Clean(endpoint); clean != endpoint && clean+"/" != endpoint {
			t.Errorf("%q is not clean", endpoint)
		}
		const proxy = "https://api:6443/api/v1/namespaces/n/services/http:s:80/proxy"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy+endpoint, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		u := request.URL
		if u.Host != "api:6443" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "" || u.String() != proxy+endpoint {
			t.Errorf("%q leads to %q", endpoint, u)
		}
		if alone, err := url.ParseRequestURI(endpoint); err != nil || alone.Path != endpoint || alone.Host != "" {
			t.Errorf("%q is another path for a server: %v, %v", endpoint, alone, err)
		}
	})
}
