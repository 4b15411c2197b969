package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// newDescription reads openapi.json with kin-openapi, which must find it valid.
func newDescription(t *testing.T) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatalf("kin-openapi cannot read openapi.json: %v", err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatalf("kin-openapi finds openapi.json invalid: %v", err)
	}
	return document
}

// validate has kin-openapi compare an answer to GET with what is described for a path.
func (c *contract) validate(t *testing.T, path string, got *httptest.ResponseRecorder) {
	t.Helper()
	item := c.description.Paths.Value(path)
	if item == nil {
		t.Fatalf("kin-openapi does not find %s", path)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
			Route:   &routers.Route{Spec: c.description, Path: path, PathItem: item, Method: http.MethodGet, Operation: item.Get},
		},
		Status: got.Code, Header: got.Header(), Body: io.NopCloser(bytes.NewReader(got.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("kin-openapi on %s %d: %v", path, got.Code, err)
	}
}
