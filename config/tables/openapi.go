package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"

	"github.com/healthscope/healthscope/config/settings"
	"github.com/healthscope/healthscope/healthscope/api"
)

// openAPIFile is the path of the OpenAPI document, which the status API serves.
const openAPIFile = "healthscope/api/openapi.json"

// problemMedia is the media type of errors.
const problemMedia = "application/problem+json"

// emcoMedia is the media type of the responses of EMCO 22.12.
const emcoMedia = "application/vnd.emco.v22+json"

// refTo is the prefix of a reference to a component.
const refTo = "#/components/"

// openAPI returns the OpenAPI document. The paths come from the table from which the router is built, and the schemas from the
// Go types that are served and from their comments. root is the root of the source tree.
func openAPI(root string) ([]byte, error) {
	g := &generator{schemas: openapi3.Schemas{}, comments: map[string]map[string]string{}}
	for _, folder := range []string{"healthscope/api", "healthscope/status"} {
		comments, err := settings.Comments(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		g.comments["github.com/healthscope/healthscope/"+folder] = comments
	}
	for name, s := range api.Strings() {
		g.schemas[name] = openapi3.NewSchemaRef("", stringSchema(s))
	}
	if _, err := g.document(api.Problem{}); err != nil {
		return nil, err
	}
	document := newOpenAPI(g.schemas)
	for _, o := range api.Operations() {
		item, err := g.pathItem(o)
		if err != nil {
			return nil, fmt.Errorf("cannot describe %s: %w", o.Path, err)
		}
		document.Paths.Set(o.Path, item)
	}
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, data, "", "  ")
	indented.WriteByte('\n')
	return indented.Bytes(), err
}

// generator generates schemas from types.
type generator struct {
	schemas openapi3.Schemas
	// comments are the comments of types and fields, by package.
	comments map[string]map[string]string
}

// componentNames maps types of package status to the names of their schemas, if package api has a type of the same name, or if
// the name of the type is less clear.
var componentNames = map[string]string{
	"App": "DocumentApp", "Cluster": "DocumentCluster", "Resource": "DocumentResource", "Health": "DocumentHealth", "Counts": "HealthCounts", "InstanceDocument": "Instance",
}

// componentName returns the name of the schema of a type.
func componentName(t reflect.Type) string {
	if name, ok := componentNames[t.Name()]; ok && strings.HasSuffix(t.PkgPath(), "/status") {
		return name
	}
	return capital(t.Name())
}

// document returns a reference to the schema of a document. It adds this schema, and the schemas of the types in it, to the
// generator's schemas.
func (g *generator) document(value any) (*openapi3.SchemaRef, error) {
	return openapi3gen.NewSchemaRefForValue(value, g.schemas,
		openapi3gen.CreateComponentSchemas(openapi3gen.ExportComponentSchemasOptions{ExportComponentSchemas: true, ExportTopLevelSchema: true}),
		openapi3gen.CreateTypeNameGenerator(componentName),
		openapi3gen.SchemaCustomizer(g.customize))
}

// customize adds to the schema of a type what encoding/json, tags and comments define.
func (g *generator) customize(_ string, t reflect.Type, tag reflect.StructTag, s *openapi3.Schema) error {
	s.Nullable = false // A nil pointer is left out.
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		s.Type, s.Description = &openapi3.Types{openapi3.TypeObject}, "A Kubernetes object without confidential data."
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		return g.customizeStruct(t, s)
	case s.Type.Is(openapi3.TypeInteger):
		s.Min = new(0.0) // All numbers are counts.
		return setNumbers(tag, map[string]**float64{"minimum": &s.Min, "maximum": &s.Max})
	case s.Type.Is(openapi3.TypeString):
		s.Format, s.Pattern = cmp.Or(tag.Get("format"), s.Format), tag.Get("pattern")
		s.Enum = enum(strings.FieldsFunc(tag.Get("enum"), func(r rune) bool { return r == ',' }))
		if text := tag.Get("minLength"); text != "" {
			var err error
			s.MinLength, err = strconv.ParseUint(text, 10, 64)
			return err
		}
	}
	return nil
}

// setNumbers sets the bounds that are given in a tag.
func setNumbers(tag reflect.StructTag, bounds map[string]**float64) error {
	for name, bound := range bounds {
		if text := tag.Get(name); text != "" {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			*bound = &number
		}
	}
	return nil
}

// customizeStruct sets the descriptions of a struct and its fields, and which fields are required.
func (g *generator) customizeStruct(t reflect.Type, s *openapi3.Schema) error {
	comments := g.comments[t.PkgPath()]
	s.Description = meaning(t.Name(), comments[t.Name()])
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.Properties[name]
		if property == nil {
			continue
		}
		owner := t
		for _, i := range field.Index[:len(field.Index)-1] {
			owner = owner.Field(i).Type
		}
		description := meaning(field.Name, comments[owner.Name()+"."+field.Name])
		if description == "" {
			return fmt.Errorf("field %s of %s has no comment", field.Name, owner)
		}
		if form := field.Tag.Get("openapi"); form != "" {
			if g.schemas[form] == nil {
				return fmt.Errorf("field %s of %s is to have form %q, which there is not", field.Name, owner, form)
			}
			property = openapi3.NewSchemaRef(refTo+"schemas/"+form, nil)
			s.Properties[name] = property
		}
		if options != "omitempty" && options != "omitzero" {
			s.Required = append(s.Required, name)
		}
		if property.Value != nil && !strings.HasPrefix(property.Ref, refTo) {
			property.Value.Description = description
			present(property.Value, options == "omitempty" && field.Type.Kind() != reflect.Pointer)
		}
	}
	slices.Sort(s.Required)
	return nil
}

// present requires a non-empty value, if empty values are omitted.
func present(s *openapi3.Schema, omitted bool) {
	switch {
	case !omitted:
	case s.Type.Is(openapi3.TypeArray):
		s.MinItems = 1
	case s.Type.Is(openapi3.TypeInteger):
		s.Min = new(max(1, *s.Min))
	case s.Type.Is(openapi3.TypeString) && s.Format == "" && s.Enum == nil:
		s.MinLength = max(1, s.MinLength)
	}
}

// stringSchema returns the schema of a string.
func stringSchema(s api.StringSchema) *openapi3.Schema {
	schema := openapi3.NewStringSchema().WithMinLength(int64(s.MinLength)).WithPattern(s.Pattern).WithFormat(s.Format)
	if s.MaxLength > 0 {
		schema.WithMaxLength(int64(s.MaxLength))
	}
	schema.Description, schema.Enum = s.Description, enum(s.Enum)
	return schema
}

func enum(words []string) []any {
	var values []any
	for _, word := range words {
		values = append(values, word)
	}
	return values
}

// pathItem returns the description of a path.
func (g *generator) pathItem(o api.Operation) (*openapi3.PathItem, error) {
	item := &openapi3.PathItem{}
	for _, p := range o.Parameters {
		item.Parameters = append(item.Parameters, parameterRef(p, openapi3.ParameterInQuery))
	}
	for _, p := range o.PathParameters {
		item.Parameters = append(item.Parameters, parameterRef(p, openapi3.ParameterInPath))
	}
	if o.Method == http.MethodPost {
		var err error
		item.Post, err = g.post(o)
		return item, err
	}
	response, err := g.response(o)
	if err != nil {
		return nil, err
	}
	item.Get = newOperation(o, http.StatusOK, response, statuses(o))
	of := strings.TrimPrefix(strings.TrimPrefix(o.ID, "get"), "list")
	item.Head = &openapi3.Operation{
		OperationID: "head" + of, Tags: []string{o.Tag}, Summary: "Get the headers of GET",
		Responses: openapi3.NewResponses(openapi3.WithName("default", nil)),
	}
	item.Head.Responses.Set("default", &openapi3.ResponseRef{Ref: refTo + "responses/Head"})
	if o.Anonymous {
		item.Get.Security, item.Head.Security = openapi3.NewSecurityRequirements(), openapi3.NewSecurityRequirements()
	}
	return item, nil
}

// post returns the description of POST, which changes something.
func (g *generator) post(o api.Operation) (*openapi3.Operation, error) {
	accepted := openapi3.NewResponse().WithDescription("The request is stored, and is carried out afterwards.")
	codes := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestURITooLong,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable,
	}
	if o.Document != nil {
		schema, err := g.document(o.Document)
		if err != nil {
			return nil, err
		}
		accepted.Content = openapi3.NewContentWithSchemaRef(schema, o.MediaTypes)
		codes = append(codes, http.StatusNotAcceptable)
	}
	if o.Body != nil {
		codes = append(codes, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	}
	operation := newOperation(o, http.StatusAccepted, accepted, codes)
	if o.Body != nil {
		schema, err := g.document(o.Body)
		if err != nil {
			return nil, err
		}
		operation.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().WithRequired(true).WithJSONSchemaRef(schema)}
	}
	operation.Security = &openapi3.SecurityRequirements{{"BearerToken": {}}}
	return operation, nil
}

// newOperation returns an operation with its response, and with its errors.
func newOperation(o api.Operation, status int, response *openapi3.Response, codes []int) *openapi3.Operation {
	responses := []openapi3.NewResponsesOption{openapi3.WithStatus(status, &openapi3.ResponseRef{Value: response})}
	for _, code := range codes {
		responses = append(responses, openapi3.WithStatus(code, &openapi3.ResponseRef{Ref: refTo + "responses/" + responseName(code)}))
	}
	return &openapi3.Operation{OperationID: o.ID, Tags: []string{o.Tag}, Summary: o.Summary, Description: o.Description, Responses: openapi3.NewResponses(responses...)}
}

func parameterRef(p api.Parameter, in string) *openapi3.ParameterRef {
	parameter := &openapi3.Parameter{Name: p.Name, In: in, Required: in == openapi3.ParameterInPath, Description: p.Description, AllowEmptyValue: p.AllowEmpty}
	switch {
	case p.Maximum > 0:
		parameter.Schema = openapi3.NewSchemaRef("", openapi3.NewIntegerSchema().WithMin(0).WithMax(float64(p.Maximum)))
	case p.Schema != "":
		parameter.Schema = openapi3.NewSchemaRef(refTo+"schemas/"+p.Schema, nil)
	default:
		parameter.Schema = openapi3.NewSchemaRef("", openapi3.NewStringSchema())
	}
	if p.MaxItems > 0 {
		list := openapi3.NewArraySchema().WithMinItems(1).WithMaxItems(int64(p.MaxItems))
		list.Items, parameter.Style, parameter.Explode = parameter.Schema, openapi3.SerializationForm, new(true)
		parameter.Schema = openapi3.NewSchemaRef("", list)
	}
	return &openapi3.ParameterRef{Value: parameter}
}

// response returns the description of a successful response to GET.
func (g *generator) response(o api.Operation) (*openapi3.Response, error) {
	response := openapi3.NewResponse().WithDescription("The answer.")
	response.Content = openapi3.Content{}
	for _, mediaType := range o.MediaTypes {
		var schema *openapi3.SchemaRef
		switch {
		case mediaType == "text/plain":
			schema = openapi3.NewSchemaRef(refTo+"schemas/"+o.Text, nil)
		case mediaType == "text/event-stream":
			schema = openapi3.NewSchemaRef(refTo+"schemas/Events", nil)
		case mediaType == emcoMedia:
			schema = openapi3.NewSchemaRef("", openapi3.NewSchema())
			for _, value := range o.EMCO {
				one, err := g.document(value)
				if err != nil {
					return nil, err
				}
				schema.Value.AnyOf = append(schema.Value.AnyOf, one)
			}
		case o.Document == nil:
			schema = openapi3.NewSchemaRef("", openapi3.NewObjectSchema().WithRequired([]string{"openapi", "info", "paths", "components"}))
			schema.Value.Description = "An OpenAPI 3.1 document."
		default:
			var err error
			if schema, err = g.document(o.Document); err != nil {
				return nil, err
			}
		}
		response.Content[mediaType] = openapi3.NewMediaType().WithSchemaRef(schema)
	}
	if !o.Anonymous {
		response.Headers = openapi3.Headers{"ETag": {Ref: refTo + "headers/ETag"}}
	}
	if slices.ContainsFunc(o.Parameters, func(p api.Parameter) bool { return p.Name == "continue" }) {
		response.Headers["Link"] = &openapi3.HeaderRef{Ref: refTo + "headers/Link"}
	}
	return response, nil
}

// statuses returns the status codes of a path besides 200.
func statuses(o api.Operation) []int {
	codes := []int{http.StatusBadRequest, http.StatusNotAcceptable, http.StatusRequestURITooLong}
	if !o.Anonymous {
		codes = append(codes, http.StatusNotModified, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	}
	if len(o.PathParameters) > 0 {
		codes = append(codes, http.StatusNotFound)
	}
	if !o.Constant {
		codes = append(codes, http.StatusInternalServerError, http.StatusServiceUnavailable)
	}
	return codes
}
