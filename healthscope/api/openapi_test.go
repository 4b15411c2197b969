package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/status"
)

// TestOpenAPIDescribesTheRoutes asserts that openapi.json describes each path with its methods, parameters and media types, and
// whether it requires a token.
func TestOpenAPIDescribesTheRoutes(t *testing.T) {
	c := newContract(t)
	served := map[string]bool{}
	for _, o := range Operations() {
		served[o.Path] = true
		item := c.Paths.Value(o.Path)
		if item == nil {
			t.Errorf("%s is not described", o.Path)
			continue
		}
		for method, operation := range item.Operations() {
			if operation.OperationID == "" || operation.Summary == "" {
				t.Errorf("%s %s has the operationId %q and the summary %q", method, o.Path, operation.OperationID, operation.Summary)
			}
			if anonymous := operation.Security != nil && len(*operation.Security) == 0; anonymous != o.Anonymous {
				t.Errorf("%s %s needs no token: %t; described is %t", method, o.Path, o.Anonymous, anonymous)
			}
		}
		method, fine := methodOf(o.Path)
		methods := []string{http.MethodGet, http.MethodHead}
		if posts[o.Path] {
			methods = []string{method}
		}
		if diff := cmp.Diff(methods, slices.Sorted(maps.Keys(item.Operations()))); diff != "" {
			t.Errorf("methods of %s (-allowed +described):\n%s", o.Path, diff)
		}
		var described []string
		for _, p := range item.Parameters {
			described = append(described, p.Value.In+" "+p.Value.Name)
		}
		if diff := cmp.Diff(parametersOf(o), described); diff != "" {
			t.Errorf("parameters of %s (-taken +described):\n%s", o.Path, diff)
		}
		content := item.GetOperation(method).Responses.Status(fine).Value.Content
		if diff := cmp.Diff(slices.Sorted(slices.Values(o.MediaTypes)), slices.Sorted(maps.Keys(content))); diff != "" {
			t.Errorf("media types of %s (-offered +described):\n%s", o.Path, diff)
		}
	}
	for path := range c.Paths.Map() {
		if !served[path] {
			t.Errorf("%s is described and not served", path)
		}
	}
}

// parametersOf returns the locations and names of the parameters of a path, such as "query namespace".
func parametersOf(o Operation) []string {
	var all []string
	for _, name := range parameterNames(o.Parameters) {
		all = append(all, "query "+name)
	}
	for _, name := range pathParameterPattern.FindAllStringSubmatch(o.Path, -1) {
		all = append(all, "path "+name[1])
	}
	return all
}

func TestStatusDocumentsTakeAllParametersOfTheirQuery(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(status.Parameters(), status.EMCOParameters()...))), parameterNames(documentParameters)); diff != "" {
		t.Errorf("parameters (-read +taken):\n%s", diff)
	}
}

func TestOpenAPIHasNoComponentWithoutUse(t *testing.T) {
	c := newContract(t)
	components := map[string][]string{
		"responses": slices.Sorted(maps.Keys(c.Components.Responses)),
		"schemas":   slices.Sorted(maps.Keys(c.Components.Schemas)),
	}
	for kind, names := range components {
		for _, name := range names {
			ref := `"#/components/` + kind + "/" + name + `"`
			// No operation can refer to the responses to other methods of a path and to requests for other hosts.
			if name != "MethodNotAllowed" && name != "MisdirectedRequest" && !bytes.Contains(openAPI, []byte(ref)) {
				t.Errorf("nothing refers to %s", ref)
			}
		}
	}
}

// TestOpenAPINamesAreThoseAccepted asserts that the server accepts exactly the names that are valid by openapi.json.
func TestOpenAPINamesAreThoseAccepted(t *testing.T) {
	schemas := newContract(t).Components.Schemas
	names := rapid.OneOf(
		rapid.StringMatching(`[-.a-zA-Z0-9_]{0,20}`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,6}`),
		rapid.String())
	described := func(s *openapi3.SchemaRef, name string) bool { return s.Value.VisitJSONString(name) == nil }
	accepted := func(namespace, name string) bool {
		r := &http.Request{Pattern: "/scopes/{namespace}/{name}"}
		r.SetPathValue("namespace", namespace)
		r.SetPathValue("name", name)
		return newHandler(Options{}).readScope(&requestInfo{Request: r}) == nil
	}
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		if accepted, described := accepted("default", name), described(schemas["ScopeName"], name); accepted != described {
			t.Errorf("scope %q: accepted %t, described %t", name, accepted, described)
		}
		if accepted, described := accepted(name, "vfw"), described(schemas["NamespaceName"], name); accepted != described {
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
			var want, served map[string]any
			if err := json.Unmarshal(get(t, NewHandler(Options{Version: tt.version}), "/openapi.json", nil).Body.Bytes(), &served); err != nil {
				t.Fatalf("what is served is not JSON: %v", err)
			}
			if err := json.Unmarshal(openAPI, &want); err != nil {
				t.Fatal(err)
			}
			info, _ := want["info"].(map[string]any)
			info["version"] = tt.want
			if diff := cmp.Diff(want, served); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}
