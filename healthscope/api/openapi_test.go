package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

func TestOpenAPIDescribesTheRoutes(t *testing.T) {
	c := newContract(t)
	routes := newHandler(Options{}).routes()
	served := make([]string, 0, len(routes))
	for _, rt := range routes {
		served = append(served, rt.pattern)
	}
	slices.Sort(served)
	if diff := cmp.Diff(served, slices.Sorted(maps.Keys(c.Paths))); diff != "" {
		t.Errorf("paths (-served +described):\n%s", diff)
	}
	ids := map[string]string{}
	for path, item := range c.Paths {
		operations := map[string]*operation{}
		if item.Get != nil {
			operations[http.MethodGet] = item.Get
		}
		if item.Head != nil {
			operations[http.MethodHead] = item.Head
		}
		if diff := cmp.Diff(strings.Split(allowedMethods, ", "), slices.Sorted(maps.Keys(operations))); diff != "" {
			t.Errorf("methods of %s (-allowed +described):\n%s", path, diff)
		}
		for method, o := range operations {
			if other, taken := ids[o.ID]; taken || o.ID == "" || o.Summary == "" {
				t.Errorf("%s %s has the operationId %q (also of %q) and the summary %q", method, path, o.ID, other, o.Summary)
			}
			ids[o.ID] = method + " " + path
		}
	}
}

func TestOpenAPIDescribesTheParameters(t *testing.T) {
	c := newContract(t)
	inPath := regexp.MustCompile(`{(\w+)}`)
	for _, rt := range newHandler(Options{}).routes() {
		var want, described []string
		for _, name := range rt.parameters {
			want = append(want, "query "+name)
		}
		for _, match := range inPath.FindAllStringSubmatch(rt.pattern, -1) {
			want = append(want, "path "+match[1])
		}
		for _, p := range c.Paths[rt.pattern].Parameters {
			p = c.parameter(t, p)
			described = append(described, p.In+" "+p.Name)
		}
		if diff := cmp.Diff(want, described); diff != "" {
			t.Errorf("parameters of %s (-taken +described):\n%s", rt.pattern, diff)
		}
	}
}

func TestOpenAPIDescribesTheOffers(t *testing.T) {
	c := newContract(t)
	for _, rt := range newHandler(Options{}).routes() {
		described := slices.Sorted(maps.Keys(c.response(t, c.Paths[rt.pattern].Get.Responses["200"]).Content))
		offered := slices.Clone(rt.offers)
		if rt.watch != nil {
			offered = append(offered, typeStream)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(offered)), described); diff != "" {
			t.Errorf("media types of %s (-offered +described):\n%s", rt.pattern, diff)
		}
	}
}

func TestOpenAPIHasNoComponentWithoutUse(t *testing.T) {
	c := newContract(t)
	components := map[string][]string{
		"parameters": slices.Sorted(maps.Keys(c.Components.Parameters)),
		"responses":  slices.Sorted(maps.Keys(c.Components.Responses)),
		"schemas":    slices.Sorted(maps.Keys(c.Components.Schemas)),
	}
	for kind, names := range components {
		for _, name := range names {
			ref := `"#/components/` + kind + "/" + name + `"`
			// No operation can refer to the answers that a path gives to other methods, and to whatever is for another host.
			if name != "MethodNotAllowed" && name != "MisdirectedRequest" && !bytes.Contains(openAPI, []byte(ref)) {
				t.Errorf("nothing refers to %s", ref)
			}
		}
	}
}

func TestOpenAPIKnowsTheStates(t *testing.T) {
	states := healthscope.States()
	want := make([]string, 0, len(states))
	for _, s := range states {
		want = append(want, string(s))
	}
	if diff := cmp.Diff(want, newContract(t).Components.Schemas["State"].Enum); diff != "" {
		t.Errorf("states (-core +described):\n%s", diff)
	}
}

// TestOpenAPIScopeHasAllOfTheItem holds the two schemas together that say the same in short and in full.
func TestOpenAPIScopeHasAllOfTheItem(t *testing.T) {
	schemas := newContract(t).Components.Schemas
	item, scope := schemas["ScopeItem"], schemas["Scope"]
	for key, want := range item.Properties {
		if diff := cmp.Diff(want, scope.Properties[key]); diff != "" {
			t.Errorf("property %q (-ScopeItem +Scope):\n%s", key, diff)
		}
	}
	for _, key := range item.Required {
		if !slices.Contains(scope.Required, key) {
			t.Errorf("Scope does not require %q", key)
		}
	}
}

// TestOpenAPINamesAreThoseAccepted asserts that a client that checks names by the description sends what the server takes, and all of it.
func TestOpenAPINamesAreThoseAccepted(t *testing.T) {
	schemas := newContract(t).Components.Schemas
	names := rapid.OneOf(
		rapid.StringMatching(`[-.a-zA-Z0-9_]{0,20}`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,6}`),
		rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		described := len(checkString("name", schemas["ScopeName"], name)) == 0
		if accepted := checkScopeName(name) == nil; accepted != described {
			t.Errorf("scope %q: accepted %t, described %t", name, accepted, described)
		}
		described = len(checkString("namespace", schemas["NamespaceName"], name)) == 0
		if accepted := checkNamespace(name) == nil; accepted != described {
			t.Errorf("namespace %q: accepted %t, described %t", name, accepted, described)
		}
	})
}

func TestOpenAPIShowsTheVersion(t *testing.T) {
	tests := map[string]struct{ version, want string }{
		"none":       {version: "", want: "devel"},
		"a release":  {version: "v1.2.3", want: "v1.2.3"},
		"with signs": {version: `v1 "é\` + "\x01", want: `v1 "é\` + "\x01"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var served openAPIDocument
			if err := json.Unmarshal(get(t, NewHandler(Options{Version: tt.version}), "/openapi.json", nil).Body.Bytes(), &served); err != nil {
				t.Fatalf("what is served is not JSON: %v", err)
			}
			want := newContract(t).openAPIDocument
			want.Info["version"] = tt.want
			if diff := cmp.Diff(want, served); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOpenAPISaysWhoMustBringAToken asserts that the paths that anybody may ask for are described as such, and no others.
func TestOpenAPISaysWhoMustBringAToken(t *testing.T) {
	c := newContract(t)
	for _, rt := range newHandler(Options{}).routes() {
		if o := c.Paths[rt.pattern].Get; (rt.access == nil) != (o.Security != nil && len(o.Security) == 0) {
			t.Errorf("%s needs a token: %t; described is %v", rt.pattern, rt.access != nil, o.Security)
		}
	}
}
