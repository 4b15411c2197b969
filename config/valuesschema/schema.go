// Package valuesschema generates the part of the chart's values.schema.json that describes the program's configuration file.
// With it, Helm rejects values of a wrong form, as the program would, and names the field. Only the program validates what
// depends on other fields, or on the text in a field.
package valuesschema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/config/settings"
)

// maxExact is the largest integer that Helm passes on exactly. Helm reads numbers as floating point, so the program would get
// another text for a larger number. The decoder of the configuration file accepts numbers and booleans for strings, too.
const maxExact = 1<<53 - 1

// definitions is the path of the schemas that string fields share.
const definitions = "#/properties/config/definitions/"

var (
	// filled are the fields that the chart sets from other values.
	filled = []string{
		"apiVersion", "kind", "api.bindAddress", "api.certFile", "api.keyFile", "metrics.bindAddress", "metrics.certFile", "metrics.keyFile",
	}
	// read are the fields that templates read, and the sections that they merge or test. In these, null differs from an absent
	// value, and a number is not accepted as text.
	read = []string{
		"fleet", "fleet.namespace", "fleet.monitorNamespace", "inventory", "inventory.url", "api", "metrics", "tracing", "tracing.endpoint",
		"appContext", "appContext.endpoints", "monitor.createBundles", "monitor.kinds[].apiVersion", "monitor.kinds[].kind",
	}
	descriptions = map[string]string{
		"api":     "Addresses and certificates are the chart's: api of these values.",
		"metrics": "Addresses and certificates are the chart's: metrics of these values.",
	}
)

// schema is a JSON Schema, draft 7, with the keywords that are needed here.
type schema struct {
	Ref                  string     `json:"$ref,omitempty"`
	Description          string     `json:"description,omitempty"`
	Type                 types      `json:"type,omitempty"`
	Enum                 []any      `json:"enum,omitempty"`
	MinLength            int        `json:"minLength,omitempty"`
	Minimum              *int64     `json:"minimum,omitempty"`
	Maximum              *int64     `json:"maximum,omitempty"`
	MinItems             int        `json:"minItems,omitempty"`
	Items                *schema    `json:"items,omitempty"`
	AdditionalProperties *bool      `json:"additionalProperties,omitempty"`
	Required             []string   `json:"required,omitempty"`
	Properties           properties `json:"properties,omitzero"` // An object may have none.
	Definitions          properties `json:"definitions,omitzero"`
}

// types are the JSON types that a value may have.
type types []string

// MarshalJSON writes a single type as a string, and several as a list.
func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// property is a named schema.
type property struct {
	name   string
	schema *schema
}

// properties keep their order.
type properties []property

// MarshalJSON writes an object.
func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, one := range p {
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.schema)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = slices.Concat(out, name, []byte{':'}, value)
	}
	return append(out, '}'), nil
}

// of returns the schema of config in the chart's values.
func of(all []settings.Setting) *schema {
	root := newObject()
	root.Definitions = properties{
		{"text", text("Numbers and booleans are taken as text, unless Helm would round them.", 1, "string", "number", "boolean")},
		{"optionalText", text("The same, or nothing.", 0, "string", "number", "boolean", "null")},
	}
	parents := map[string]*schema{"": root}
	for _, s := range all {
		if slices.Contains(filled, s.Path) {
			continue
		}
		node := nodeOf(s)
		switch s.Kind {
		case settings.Object:
			parents[s.Path] = node
		case settings.Objects:
			parents[s.Path+"[]"] = node.Items
		default: // Other kinds contain no fields.
		}
		dot := strings.LastIndex(s.Path, ".")
		parent := parents[s.Path[:max(dot, 0)]]
		name := s.Path[dot+1:]
		parent.Properties = append(parent.Properties, property{name, node})
		if s.Required {
			parent.Required = append(parent.Required, name)
		}
	}
	return root
}

func nodeOf(s settings.Setting) *schema {
	isRead := slices.Contains(read, s.Path)
	var node *schema
	switch s.Kind {
	case settings.Object:
		node = newObject()
		node.Description = descriptions[s.Path]
	case settings.Objects:
		node = &schema{Type: types{"array"}, Items: newObject()}
	case settings.Strings:
		node = &schema{Type: types{"array"}, Items: stringOf(!s.EmptyEntries, isRead)}
		if s.Required {
			node.MinItems = 1
		}
	case settings.Integer:
		least, largest := int64(s.Minimum), int64(s.Maximum)
		node = &schema{Type: types{"integer"}, Minimum: &least, Maximum: &largest}
	case settings.Boolean:
		node = &schema{Type: types{"boolean"}}
	case settings.String:
		if len(s.Values) == 0 {
			return stringOf(s.Required, isRead)
		}
		return enumOf(s.Values, s.Required)
	}
	if !s.Required && !isRead {
		node.Type = append(node.Type, "null") // The decoder treats null as absent.
	}
	return node
}

func newObject() *schema {
	no := false
	return &schema{Type: types{"object"}, AdditionalProperties: &no, Properties: properties{}}
}

func text(description string, minLength int, t ...string) *schema {
	least, largest := int64(-maxExact), int64(maxExact)
	return &schema{Description: description, Type: t, MinLength: minLength, Minimum: &least, Maximum: &largest}
}

func stringOf(required, isRead bool) *schema {
	switch {
	case isRead:
		return &schema{Type: types{"string"}, MinLength: 1}
	case required:
		return &schema{Ref: definitions + "text"}
	default:
		return &schema{Ref: definitions + "optionalText"}
	}
}

func enumOf(values []string, required bool) *schema {
	var enum []any
	for _, v := range values {
		enum = append(enum, v)
	}
	if !required {
		enum = append(enum, "", nil) // Both mean the default.
	}
	return &schema{Enum: enum}
}
