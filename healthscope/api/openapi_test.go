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
	type facts struct {
		Methods, Parameters, MediaTypes []string
		Anonymous                       bool
	}
	served, described := map[string]facts{}, map[string]facts{}
	for path, o := range operations {
		f := facts{Methods: []string{http.MethodGet, http.MethodHead}, MediaTypes: slices.Sorted(slices.Values(o.MediaTypes)), Anonymous: o.Anonymous}
		if changesSomething(path) {
			f.Methods = []string{http.MethodPost}
		}
		for _, name := range parameterNames(o.Parameters) {
			f.Parameters = append(f.Parameters, "query "+name)
		}
		for _, name := range pathParameterPattern.FindAllStringSubmatch(path, -1) {
			f.Parameters = append(f.Parameters, "path "+name[1])
		}
		served[path] = f
	}
	for path, item := range newContract(t).Paths.Map() {
		method, fine := methodOf(path)
		f := facts{Methods: slices.Sorted(maps.Keys(item.Operations())), MediaTypes: slices.Sorted(maps.Keys(item.GetOperation(method).Responses.Status(fine).Value.Content))}
		for _, p := range item.Parameters {
			f.Parameters = append(f.Parameters, p.Value.In+" "+p.Value.Name)
		}
		for _, operation := range item.Operations() {
			f.Anonymous = operation.Security != nil && len(*operation.Security) == 0
			if operation.OperationID == "" || operation.Summary == "" {
				t.Errorf("%s has the operationId %q and the summary %q", path, operation.OperationID, operation.Summary)
			}
		}
		described[path] = f
	}
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("(-served +described):\n%s", diff)
	}
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
