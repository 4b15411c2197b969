package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// openAPIDocument is as much of OpenAPI 3.1 as openapi.json uses. It is decoded strictly, so that no part of the description goes unchecked.
type openAPIDocument struct {
	OpenAPI    string              `json:"openapi"`
	Info       map[string]any      `json:"info"`
	Servers    []any               `json:"servers"`
	Security   []any               `json:"security"`
	Tags       []any               `json:"tags"`
	Paths      map[string]pathItem `json:"paths"`
	Components struct {
		Security   map[string]any          `json:"securitySchemes"`
		Headers    map[string]any          `json:"headers"`
		Parameters map[string]parameter    `json:"parameters"`
		Responses  map[string]response     `json:"responses"`
		Schemas    map[string]schemaObject `json:"schemas"`
	} `json:"components"`
}

type pathItem struct {
	Parameters []parameter `json:"parameters"`
	Get        *operation  `json:"get"`
	Head       *operation  `json:"head"`
}

type operation struct {
	ID          string              `json:"operationId"`
	Tags        []string            `json:"tags"`
	Summary     string              `json:"summary"`
	Description string              `json:"description"`
	Security    []any               `json:"security"`
	Responses   map[string]response `json:"responses"`
}

type parameter struct {
	Ref         string       `json:"$ref"`
	Name        string       `json:"name"`
	In          string       `json:"in"`
	Required    bool         `json:"required"`
	Description string       `json:"description"`
	Style       string       `json:"style"`
	Explode     bool         `json:"explode"`
	AllowEmpty  bool         `json:"allowEmptyValue"`
	Schema      schemaObject `json:"schema"`
}

type response struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Headers     map[string]any   `json:"headers"`
	Content     map[string]media `json:"content"`
}

type media struct {
	Schema schemaObject `json:"schema"`
}

type schemaObject struct {
	Ref         string                  `json:"$ref"`
	Description string                  `json:"description"`
	Type        string                  `json:"type"`
	Format      string                  `json:"format"`
	Pattern     string                  `json:"pattern"`
	Enum        []string                `json:"enum"`
	MinLength   *int                    `json:"minLength"`
	MaxLength   *int                    `json:"maxLength"`
	Minimum     *float64                `json:"minimum"`
	Maximum     *float64                `json:"maximum"`
	Required    []string                `json:"required"`
	Properties  map[string]schemaObject `json:"properties"`
	Additional  *schemaObject           `json:"additionalProperties"`
	Items       *schemaObject           `json:"items"`
	MinItems    *int                    `json:"minItems"`
	MaxItems    *int                    `json:"maxItems"`
}

// contract is openapi.json with what tests have seen of it.
type contract struct {
	openAPIDocument
	// description is the same, read by a library that others have written.
	description *openapi3.T
	// seen holds the properties and the status codes that answers had.
	seen map[string]bool
}

func newContract(t *testing.T) *contract {
	t.Helper()
	c := &contract{seen: map[string]bool{}}
	decoder := json.NewDecoder(bytes.NewReader(openAPI))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c.openAPIDocument); err != nil {
		t.Fatalf("cannot read openapi.json: %v", err)
	}
	c.description = newDescription(t)
	return c
}

// component follows a reference to one of the named components of a kind.
func component[T any](t *testing.T, ref, kind string, named map[string]T) (T, string) {
	t.Helper()
	name, ok := strings.CutPrefix(ref, "#/components/"+kind+"/")
	found, exists := named[name]
	if !ok || !exists {
		t.Fatalf("openapi.json refers to %q, which it does not have", ref)
	}
	return found, name
}

func (c *contract) response(t *testing.T, r response) response {
	t.Helper()
	if r.Ref != "" {
		r, _ = component(t, r.Ref, "responses", c.Components.Responses)
	}
	return r
}

func (c *contract) parameter(t *testing.T, p parameter) parameter {
	t.Helper()
	if p.Ref != "" {
		p, _ = component(t, p.Ref, "parameters", c.Components.Parameters)
	}
	return p
}

// checkAnswer compares an answer to GET with what is described for a path.
func (c *contract) checkAnswer(t *testing.T, path string, got *httptest.ResponseRecorder) {
	t.Helper()
	code := strconv.Itoa(got.Code)
	described, ok := c.Paths[path].Get.Responses[code]
	if !ok {
		t.Fatalf("openapi.json does not describe status %s of %s", code, path)
	}
	c.seen["GET "+path+" "+code] = true
	c.validate(t, path, got)
	if got.Code == http.StatusNotModified {
		if got.Body.Len() > 0 || got.Header().Get("ETag") == "" {
			t.Errorf("304 with ETag %q and content %q", got.Header().Get("ETag"), got.Body)
		}
		return
	}
	c.checkContent(t, path+" "+code, c.response(t, described), got)
}

// checkContent compares the content of an answer with a described response.
func (c *contract) checkContent(t *testing.T, what string, described response, got *httptest.ResponseRecorder) {
	t.Helper()
	mediaType, _, _ := strings.Cut(got.Header().Get("Content-Type"), ";")
	content, ok := described.Content[mediaType]
	if !ok {
		t.Fatalf("openapi.json does not describe %s as %q", what, mediaType)
	}
	var value any = got.Body.String()
	if mediaType != typeText {
		if err := json.Unmarshal(got.Body.Bytes(), &value); err != nil {
			t.Fatalf("the content of %s is not JSON: %v", what, err)
		}
	}
	for _, problem := range c.check(t, what, content.Schema, value) {
		t.Error(problem)
	}
}

// check returns what is wrong with a value. What an object holds must be described.
func (c *contract) check(t *testing.T, at string, s schemaObject, value any) []string {
	t.Helper()
	name := ""
	if s.Ref != "" {
		s, name = component(t, s.Ref, "schemas", c.Components.Schemas)
	}
	switch v := value.(type) {
	case map[string]any:
		return c.checkObject(t, at, name, s, v)
	case []any:
		if s.Type != "array" {
			return []string{fmt.Sprintf("%s is a list, not a %s", at, s.Type)}
		}
		var problems []string
		for i, element := range v {
			problems = append(problems, c.check(t, fmt.Sprintf("%s[%d]", at, i), *s.Items, element)...)
		}
		return problems
	case string:
		return checkString(at, s, v)
	case float64:
		return checkNumber(at, s, v)
	case bool:
		if s.Type == "boolean" {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, not a %s", at, value, s.Type)}
}

func (c *contract) checkObject(t *testing.T, at, name string, s schemaObject, object map[string]any) []string {
	t.Helper()
	if s.Type != "object" {
		return []string{fmt.Sprintf("%s is an object, not a %s", at, s.Type)}
	}
	var problems []string
	for _, required := range s.Required {
		if _, ok := object[required]; !ok {
			problems = append(problems, fmt.Sprintf("%s lacks %q", at, required))
		}
	}
	if s.Properties == nil && s.Additional == nil { // Of the OpenAPI document itself, and of Kubernetes objects, the properties are not described.
		return problems
	}
	for key, element := range object {
		described, ok := s.Properties[key]
		if !ok && s.Additional != nil {
			described, ok = *s.Additional, true
		}
		if !ok {
			problems = append(problems, fmt.Sprintf("%s has %q, which is not described", at, key))
			continue
		}
		c.seen[name+"."+key] = true
		problems = append(problems, c.check(t, at+"."+key, described, element)...)
	}
	return problems
}

func checkString(at string, s schemaObject, text string) []string {
	matches := map[string]bool{
		"type":      s.Type == "string",
		"enum":      s.Enum == nil || slices.Contains(s.Enum, text),
		"pattern":   s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(text),
		"format":    s.Format == "" || hasFormat(s.Format, text),
		"minLength": s.MinLength == nil || len(text) >= *s.MinLength,
		"maxLength": s.MaxLength == nil || len(text) <= *s.MaxLength,
	}
	return against(at, text, matches)
}

func checkNumber(at string, s schemaObject, number float64) []string {
	matches := map[string]bool{
		"type":    s.Type == "integer" && number == float64(int64(number)),
		"minimum": s.Minimum == nil || number >= *s.Minimum,
		"maximum": s.Maximum == nil || number <= *s.Maximum,
	}
	return against(at, number, matches)
}

func against(at string, value any, matches map[string]bool) []string {
	var problems []string
	for keyword, ok := range matches {
		if !ok {
			problems = append(problems, fmt.Sprintf("%s is %#v, against its %s", at, value, keyword))
		}
	}
	return problems
}

func hasFormat(format, text string) bool {
	switch format {
	case "date-time":
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	case "uri-reference":
		_, err := url.Parse(text)
		return err == nil
	}
	return false
}

// unseen returns the properties and status codes that are described and that no answer had.
func (c *contract) unseen() []string {
	var described []string
	for name, s := range c.Components.Schemas {
		for key := range s.Properties {
			described = append(described, name+"."+key)
		}
	}
	for path, item := range c.Paths {
		for code := range item.Get.Responses {
			described = append(described, http.MethodGet+" "+path+" "+code)
		}
	}
	slices.Sort(described)
	return slices.DeleteFunc(described, func(d string) bool { return c.seen[d] })
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	c := newContract(t)
	good := func() map[string]any {
		return map[string]any{"type": "about:blank", "title": "Not Found", "status": 404.0, "detail": "x", "instance": "/x"}
	}
	tests := map[string]func(map[string]any){
		"a required property is missing":     func(p map[string]any) { delete(p, "detail") },
		"a property that is not described":   func(p map[string]any) { p["hint"] = "x" },
		"null":                               func(p map[string]any) { p["title"] = nil },
		"text for a number":                  func(p map[string]any) { p["status"] = "404" },
		"a number for text":                  func(p map[string]any) { p["title"] = 404.0 },
		"a list for text":                    func(p map[string]any) { p["title"] = []any{"x"} },
		"an object for text":                 func(p map[string]any) { p["title"] = map[string]any{} },
		"true for text":                      func(p map[string]any) { p["title"] = true },
		"a fraction":                         func(p map[string]any) { p["status"] = 404.5 },
		"below the minimum":                  func(p map[string]any) { p["status"] = 200.0 },
		"above the maximum":                  func(p map[string]any) { p["status"] = 600.0 },
		"not in the enumeration":             func(p map[string]any) { p["type"] = "other" },
		"too short":                          func(p map[string]any) { p["detail"] = "" },
		"not in the format of the reference": func(p map[string]any) { p["instance"] = "%zz" },
	}
	problemSchema := c.Components.Schemas["Problem"]
	if problems := c.check(t, "problem", problemSchema, good()); len(problems) > 0 {
		t.Fatalf("a good problem document is refused: %q", problems)
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			p := good()
			spoil(p)
			if problems := c.check(t, "problem", problemSchema, p); len(problems) == 0 {
				t.Errorf("%v is accepted", p)
			}
		})
	}
}
