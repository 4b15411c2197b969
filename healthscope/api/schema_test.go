package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// contract is openapi.json, with a record of the parts that the tests have covered.
type contract struct {
	*openapi3.T

	// seen holds the properties and status codes that occurred in responses or in accepted bodies.
	seen map[string]bool
}

// newContract reads openapi.json, which must be valid. It does not allow additional properties in objects that have described
// properties.
func newContract(t *testing.T) *contract {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatalf("cannot read openapi.json: %v", err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatalf("openapi.json is invalid: %v", err)
	}
	for _, s := range document.Components.Schemas {
		if s.Value.Properties != nil {
			s.Value.AdditionalProperties.Has = new(false)
		}
	}
	return &contract{T: document, seen: map[string]bool{}}
}

// formats checks the format uri-reference. The format date-time is checked without it.
var formats = openapi3.WithStringFormatValidator("uri-reference", openapi3.NewCallbackValidator(func(text string) error {
	_, err := url.Parse(text)
	return err
}))

// operation returns the description of a method of a path.
func (c *contract) operation(t *testing.T, method, path string) *openapi3.Operation {
	t.Helper()
	item := c.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		t.Fatalf("openapi.json does not describe %s %s", method, path)
	}
	return item.GetOperation(method)
}

// checkAnswer compares a response with the description of a method of a path.
func (c *contract) checkAnswer(t *testing.T, method, path string, got *httptest.ResponseRecorder) {
	t.Helper()
	described := c.operation(t, method, path).Responses
	code := strconv.Itoa(got.Code)
	c.seen[method+" "+path+" "+code] = true
	c.checkContent(t, described, got)
	if got.Code == http.StatusNotModified {
		if got.Body.Len() > 0 || got.Header().Get("ETag") == "" {
			t.Errorf("304 with ETag %q and content %q", got.Header().Get("ETag"), got.Body)
		}
		return
	}
	var value any
	if media := described.Value(code).Value.Content[got.Header().Get("Content-Type")]; media != nil && json.Unmarshal(got.Body.Bytes(), &value) == nil {
		c.see(media.Schema, value)
	}
}

// checkBody compares the body of an accepted request with its description.
func (c *contract) checkBody(t *testing.T, method, path, body string, status int) {
	t.Helper()
	described := c.operation(t, method, path).RequestBody
	if described == nil || status != http.StatusAccepted {
		return
	}
	schema := described.Value.Content[typeJSON].Schema
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatal(err)
	}
	if err := schema.Value.VisitJSON(value); err != nil {
		t.Errorf("the body %s was accepted, and is not as described: %v", body, err)
	}
	c.see(schema, value)
}

// checkNamed compares a response that no path describes with one of the named responses.
func (c *contract) checkNamed(t *testing.T, name string, got *httptest.ResponseRecorder) {
	t.Helper()
	c.checkContent(t, openapi3.NewResponses(openapi3.WithStatus(got.Code, c.Components.Responses[name])), got)
}

// checkContent compares a response with the described responses.
func (c *contract) checkContent(t *testing.T, described *openapi3.Responses, got *httptest.ResponseRecorder) {
	t.Helper()
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
			Route:   &routers.Route{Spec: c.T, Method: http.MethodGet, Operation: &openapi3.Operation{Responses: described}},
		},
		Status: got.Code, Header: got.Header(), Body: io.NopCloser(bytes.NewReader(got.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, SchemaValidationOptions: []openapi3.SchemaValidationOption{formats, openapi3.EnableFormatValidation()}},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("the answer %d is not as described: %v", got.Code, err)
	}
}

// see records the properties of a value.
func (c *contract) see(s *openapi3.SchemaRef, value any) {
	for _, one := range s.Value.AnyOf {
		if one.Value.VisitJSON(value) == nil {
			c.see(one, value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			if property := s.Value.Properties[key]; property != nil {
				c.seen[s.Ref+"."+key] = true
				c.see(property, element)
			}
		}
	case []any:
		for _, element := range v {
			c.see(s.Value.Items, element)
		}
	}
}

// unseen returns the described properties and status codes that did not occur, sorted.
func (c *contract) unseen() []string {
	var described []string
	for name, s := range c.Components.Schemas {
		for key := range s.Value.Properties {
			described = append(described, "#/components/schemas/"+name+"."+key)
		}
	}
	for path, item := range c.Paths.Map() {
		for method, operation := range item.Operations() {
			if method == http.MethodHead {
				continue
			}
			for code := range operation.Responses.Map() {
				described = append(described, method+" "+path+" "+code)
			}
		}
	}
	slices.Sort(described)
	return slices.DeleteFunc(described, func(d string) bool { return c.seen[d] })
}

// TestContractRefusesWhatIsNotDescribed asserts what the comparison with openapi.json needs besides the defaults of its library.
func TestContractRefusesWhatIsNotDescribed(t *testing.T) {
	c := newContract(t)
	for body, refused := range map[string]bool{
		`{"type":"about:blank","title":"Not Found","status":404,"detail":"x","instance":"/x"}`:                        false,
		`{"type":"about:blank","title":"Not Found","status":404,"instance":"/x"}`:                                     true, // A required property is missing.
		`{"type":"about:blank","title":"Not Found","status":404,"detail":"x","instance":"/x","hint":"x"}`:             true, // One is not described.
		`{"type":"about:blank","title":"Not Found","status":404,"detail":"x","instance":"%zz"}`:                       true, // It has not its format.
		`{"type":"about:blank","title":"Not Found","status":404,"detail":"x","instance":"/x","lastSeen":"yesterday"}`: true,
	} {
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatal(err)
		}
		if err := c.Components.Schemas["Problem"].Value.VisitJSON(value, formats, openapi3.EnableFormatValidation()); (err != nil) != refused {
			t.Errorf("%s: %v", body, err)
		}
	}
}
