package verify

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	restPage        = "rest.md"
	healthScopePage = "healthscope.md"
)

// oneScope is an api.Scopes with one scope, whose status is the example on its page.
type oneScope struct{ scope *corev1alpha2.HealthScope }

// Get implements api.Scopes.
func (o oneScope) Get(_ context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	if namespace != o.scope.Namespace || name != o.scope.Name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: corev1alpha2.GroupVersion.Group, Resource: "healthscopes"}, name)
	}
	return o.scope, nil
}

// List implements api.Scopes.
func (o oneScope) List(context.Context, string) ([]corev1alpha2.HealthScope, error) {
	return []corev1alpha2.HealthScope{*o.scope}, nil
}

// Subscribe implements api.Scopes.
func (oneScope) Subscribe(func(namespace, name string)) (cancel func()) { return func() {} }

// anything is an api.Contexts and an api.Clusters. Its responses do not depend on the request.
type anything struct{}

// View implements api.Contexts.
func (anything) View(context.Context, appcontext.DeploymentRef, string) (appcontext.View, error) {
	return appcontext.View{Info: appcontext.StateInfo{Actions: []appcontext.Action{{State: appcontext.ActionCreated}}}}, nil
}

// Bundle implements api.Clusters.
func (anything) Bundle(string, string, string) (api.Observation, bool) {
	return api.Observation{}, false
}

// Instance implements api.Clusters.
func (anything) Instance(string) (found []api.Observation, unread []string) {
	return make([]api.Observation, 1), nil
}

// server returns the handler of the status API. It serves the scope whose status is the example on its page.
func server(t *testing.T) http.Handler {
	t.Helper()
	p := readPage(t, healthScopePage).section(t, "Status")
	var s corev1alpha2.HealthScope
	if err := yaml.UnmarshalStrict([]byte(p.fences("yaml")[0]), &s); err != nil {
		t.Fatalf("%s: the example of a status cannot be read: %v", p.name, err)
	}
	return api.NewHandler(api.Options{Scopes: oneScope{&s}, Documents: api.NewDocuments(api.DocumentsOptions{Contexts: anything{}, Clusters: anything{}})})
}

// ask sends a request to a new handler and returns the response.
func ask(t *testing.T, method, url, accept string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8083"+url, nil)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	recorder := httptest.NewRecorder()
	server(t).ServeHTTP(recorder, request)
	return recorder
}

// description is the part of an OpenAPI document that is compared with the page.
type description struct {
	Paths map[string]struct {
		Parameters []struct{ Name, In string } `json:"parameters"`
		Get        *described                  `json:"get"`
		Post       *described                  `json:"post"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]property `json:"schemas"`
	} `json:"components"`
}

// described is the description of a method in an OpenAPI document.
type described struct {
	Responses map[string]struct{ Content map[string]any } `json:"responses"`
}

type reference struct {
	Ref string `json:"$ref"`
}

// property is the schema of a field of a response.
type property struct {
	reference

	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

func describe(t *testing.T) description {
	t.Helper()
	var d description
	if err := json.Unmarshal(ask(t, http.MethodGet, "/openapi.json", "").Body.Bytes(), &d); err != nil {
		t.Fatalf("cannot read the OpenAPI document: %v", err)
	}
	return d
}

func (r reference) name() string { return r.Ref[strings.LastIndex(r.Ref, "/")+1:] }

func TestRoutesAreDocumented(t *testing.T) {
	p := readPage(t, restPage)
	d := describe(t)
	rows := p.rows(t, "route")
	p.documents(t, "route", slices.Sorted(maps.Keys(d.Paths)), firstCodes(rows, "route"))
	for _, r := range rows {
		route := code(r["route"])
		var parameters []string
		for _, parameter := range d.Paths[route].Parameters {
			if parameter.In == "query" {
				parameters = append(parameters, parameter.Name)
			}
		}
		if diff := cmp.Diff(parameters, codes(r["parameters"])); diff != "" {
			t.Errorf("%s: parameters of %s (-taken +documented):\n%s", p.name, route, diff)
		}
		answers, fine := d.Paths[route].Get, "200"
		if answers == nil {
			answers, fine = d.Paths[route].Post, "202"
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(answers.Responses)), strings.Split(r["status codes"], ", ")); diff != "" {
			t.Errorf("%s: status codes of %s (-given +documented):\n%s", p.name, route, diff)
		}
		types := codes(r["media types"])
		if diff := cmp.Diff(slices.Sorted(maps.Keys(answers.Responses[fine].Content)), slices.Sorted(slices.Values(types))); diff != "" {
			t.Errorf("%s: media types of %s (-given +documented):\n%s", p.name, route, diff)
		}
		if d.Paths[route].Get == nil {
			continue
		}
		url := strings.NewReplacer("{namespace}", "default", "{name}", "vfw", "{id}", "gentle-fox").Replace(route)
		if got := ask(t, http.MethodGet, url, "").Header().Get("Content-Type"); !strings.HasPrefix(got, types[0]) {
			t.Errorf("%s: the default media type of %s is %s; it must come first", p.name, route, got)
		}
	}
}

func TestFieldsOfAnswersAreDocumented(t *testing.T) {
	p := readPage(t, restPage)
	d := describe(t)
	rows := p.rows(t, "field")
	full, short := d.Components.Schemas["Scope"].Properties, d.Components.Schemas["ScopeItem"].Properties
	p.documents(t, "field", slices.Sorted(maps.Keys(full)), firstCodes(rows, "field"))
	inStatus := schemas(readCRD(t, healthScopeCRD))
	for _, r := range rows {
		name, inList := code(r["field"]), "no"
		if _, ok := short[name]; ok {
			inList = "yes"
		}
		if r["in the list"] != inList {
			t.Errorf("%s: is %s in the list? %s; the row says %s", p.name, name, inList, r["in the list"])
		}
		if !strings.HasPrefix(r["meaning"], "As `status.") {
			continue
		}
		for _, path := range d.below(code(r["meaning"]), full[name]) {
			if _, ok := inStatus[path]; !ok {
				t.Errorf("%s: %s is not as in status: there is no %s; say what it means", p.name, name, path)
			}
		}
	}
}

// below returns the paths of all fields in a property of a response, at every depth.
func (d description) below(path string, of property) []string {
	if of.Items != nil {
		return d.below(path+"[]", *of.Items)
	}
	if of.Ref != "" {
		return d.below(path, d.Components.Schemas[of.name()])
	}
	var paths []string
	for name, next := range of.Properties {
		paths = append(paths, path+"."+name)
		paths = append(paths, d.below(path+"."+name, next)...)
	}
	return paths
}

func TestErrorsAreDocumented(t *testing.T) {
	p := readPage(t, restPage)
	codesOf := map[string]bool{strconv.Itoa(http.StatusMethodNotAllowed): true, strconv.Itoa(http.StatusMisdirectedRequest): true}
	for _, path := range describe(t).Paths {
		for _, answers := range []*described{path.Get, path.Post} {
			if answers == nil {
				continue
			}
			for status := range answers.Responses {
				codesOf[status] = status >= "400"
			}
		}
	}
	maps.DeleteFunc(codesOf, func(_ string, isError bool) bool { return !isError })
	var got []string
	for _, r := range p.rows(t, "status code") {
		got = append(got, r["status code"])
		if limit := regexp.MustCompile(`\d+ bytes`).FindString(r["meaning"]); limit != "" {
			most, _ := strconv.Atoi(strings.TrimSuffix(limit, " bytes"))
			if ask(t, http.MethodGet, "/"+strings.Repeat("x", most-1), "").Code == http.StatusRequestURITooLong ||
				ask(t, http.MethodGet, "/"+strings.Repeat("x", most), "").Code != http.StatusRequestURITooLong {
				t.Errorf("%s: the limit of path and query is not %s", p.name, limit)
			}
		}
	}
	p.documents(t, "status code", slices.Sorted(maps.Keys(codesOf)), got)
}

// curl matches the curl commands of the examples.
var curl = regexp.MustCompile(`^\$ curl (?:-X (\w+) )?(?:-H 'Accept: ([^']+)' )?'?http://127\.0\.0\.1:8083([^ ']+)'?$`)

func TestExamplesOfAnswersAreTrue(t *testing.T) {
	p := readPage(t, restPage)
	asked := 0
	for _, block := range p.fences("console") {
		for example := range strings.SplitSeq("\n"+block, "\n$ ") {
			command, answer, _ := strings.Cut("$ "+example, "\n")
			match := curl.FindStringSubmatch(command)
			if match == nil {
				if strings.HasPrefix(command, "$ curl") {
					t.Errorf("%s: this test cannot read %q", p.name, command)
				}
				continue
			}
			asked++
			method := match[1]
			if method == "" {
				method = http.MethodGet
			}
			got := ask(t, method, match[3], match[2])
			compareAnswer(t, p.name+": "+command, answer, got)
		}
	}
	if asked < 4 {
		t.Errorf("%s has only %d examples with curl", p.name, asked)
	}
}

func compareAnswer(t *testing.T, example, documented string, got *httptest.ResponseRecorder) {
	t.Helper()
	if strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain") {
		if diff := cmp.Diff(strings.TrimSpace(got.Body.String()), strings.TrimSpace(documented)); diff != "" {
			t.Errorf("%s (-answered +documented):\n%s", example, diff)
		}
		return
	}
	var answered, written map[string]any
	if err := json.Unmarshal(got.Body.Bytes(), &answered); err != nil {
		t.Errorf("%s: the answer cannot be read: %v", example, err)
	}
	if err := json.Unmarshal([]byte(documented), &written); err != nil {
		t.Errorf("%s: the documented answer cannot be read: %v", example, err)
	}
	if diff := cmp.Diff(answered, written); diff != "" {
		t.Errorf("%s (-answered +documented):\n%s", example, diff)
	}
	if status, ok := answered["status"].(float64); ok && int(status) != got.Code {
		t.Errorf("%s: status %d in the answer, %v in the document", example, got.Code, status)
	}
}
