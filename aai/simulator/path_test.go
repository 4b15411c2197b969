package simulator

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestEscapeSegment(t *testing.T) {
	for in, want := range map[string]string{
		"AZaz09-._~": "AZaz09-._~", "a/b:c=d": "a%2Fb%3Ac%3Dd", "a +&": "a%20%2B%26", "é": "%C3%A9", "": "",
	} {
		diff(t, in, want, escapeSegment(in))
		if !canonicalSegment(want) {
			t.Errorf("%q is not canonical", want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		pod, podEdge, vnf + "/relationship-list", resources, "/aai/v24" + module, "", "/", "//", "network", "%", "%zz/a",
		"/network/generic-vnfs/generic-vnf/a%2Fb", "/network/generic-vnfs/generic-vnf//vf-modules", "/network/generic-vnfs/generic-vnf/%",
	} {
		f.Add(seed, 32)
		f.Add(seed, 22)
	}
	f.Fuzz(func(t *testing.T, path string, v int) {
		found, err := parsePath(trimVersion("/aai", path), v)
		if err != nil {
			if err.status() != 400 && err.status() != 404 {
				t.Errorf("status %d for %q", err.status(), path)
			}
			return
		}
		canonical := found.uri()
		if !canonicalPath(canonical) {
			t.Errorf("%q gives %q, which is not canonical", path, canonical)
		}
		again, err := parsePath(canonical, v)
		if err != nil || again.uri() != canonical || again.member != found.member {
			t.Errorf("%q gives %q, which reads as %q (%v)", path, canonical, again.uri(), err)
		}
	})
}

// FuzzRequest sends any path, query and body to any method: no panic, and an inventory that stays whole.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{podBody, linked(vnf), `{"labels":{},"relationship-list":[]}`, `[]`, `null`, `{"k8s-resources":{"k8s-resource":[{}]}}`} {
		f.Add("PUT", pod, "", body)
		f.Add("PATCH", vnf, "", body)
		f.Add("PUT", podEdge, "", body)
	}
	f.Add("GET", region, "depth=all&resultIndex=1&resultSize=1", "")
	f.Add("DELETE", vnf, "resource-version="+anyVersion, "")
	f.Add("POST", "/bulk/single-transaction", "", operations(op("put", pod, podBody), op("delete", vnf, "{}")))
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target := "/aai/v32" + path + "?" + query
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \t\r\n") || strings.ContainsAny(target, " \r\n#") || method == "" {
			return // no HTTP request line
		}
		h := newHarness(t, Options{Strict: true})
		r := call{method: "GET", path: vnf}.request(t)
		r.Method, r.URL = method, u
		if method == "PATCH" {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		rep := h.handle(newRequest(r, h.base, []byte(body)))
		if rep.status < 200 || rep.status > 599 {
			t.Errorf("status %d", rep.status)
		}
		if rep.header.Get("Content-Type") == "application/json" && len(rep.body) > 0 && !json.Valid(rep.body) {
			t.Errorf("body is no JSON: %s", rep.body)
		}
		checkInvariants(t, h.graph)
	})
}
