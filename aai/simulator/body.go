package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// document is the body of a PUT, or a patched node, read the lenient way of A&AI's MOXy unmarshaller.
type document struct {
	props    map[string]any         // string, bool, int64 or []string (sorted, without duplicates)
	version  string                 // resource-version as sent, empty for none
	children map[string][]*document // by container; a container that is present but empty has an entry
	links    []relationship
	linked   bool // a relationship-list was present, even an empty one
}

// decodeJSON reads one JSON value. Numbers keep their digits and of duplicate keys the last one wins.
func decodeJSON(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return v, nil
}

// decodeObject reads a body that must be a JSON object. A top-level array makes A&AI's unmarshaller crash.
func decodeObject(body []byte) (map[string]any, *apiError) {
	v, err := decodeJSON(body)
	if err != nil {
		return nil, fail(codeInvalidInput, "Could not unmarshall: %v", err)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case []any:
		return nil, &apiError{code: codeInternal, crash: true}
	default:
		return nil, fail(codeInvalidInput, "Could not unmarshall: not an object")
	}
}

// reader turns JSON into documents and reports on the way what A&AI swallows.
type reader struct {
	schema int
	report reporter
}

// document reads the body of a node. What the schema does not know is dropped, what has the wrong type is coerced or
// dropped; only an array in place of a string fails, with the null dereference it causes in A&AI.
func (d reader) document(t *nodeType, raw map[string]any) (*document, *apiError) {
	doc := &document{props: map[string]any{}, children: map[string][]*document{}}
	for _, name := range sortedKeys(raw) {
		p := d.known(t, name)
		if p == nil {
			d.reportUnknown(t, name, raw)
			continue
		}
		if err := d.field(doc, t, p, raw[name]); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// known returns the property, unless the schema version lacks the type it contains.
func (d reader) known(t *nodeType, name string) *property {
	p := t.property(name)
	if p != nil && p.kind == containerKind && typeContained(name, d.schema) == nil {
		return nil
	}
	return p
}

func (d reader) field(doc *document, t *nodeType, p *property, value any) *apiError {
	if value == nil {
		return nil
	}
	switch p.kind {
	case textKind, versionKind:
		return d.textField(doc, t, p, value)
	case booleanKind:
		d.expect(t, p, value, isBool(value))
		if text := scalarText(value); text == "true" || text == "false" {
			doc.props[p.name] = text == "true"
		}
	case integerKind:
		_, number := value.(json.Number)
		d.expect(t, p, value, number)
		if n, err := strconv.ParseInt(scalarText(value), 10, 64); err == nil {
			doc.props[p.name] = n
		}
	case textListKind:
		if set := d.textSet(t, p, value); len(set) > 0 {
			doc.props[p.name] = set
		}
	case containerKind:
		return d.container(doc, t, p, value)
	case relationsKind:
		return d.relationshipList(doc, t, p, value)
	}
	return nil
}

func (d reader) textField(doc *document, t *nodeType, p *property, value any) *apiError {
	_, text := value.(string)
	d.expect(t, p, value, text)
	if _, array := value.([]any); array {
		return &apiError{code: codeInternal, crash: true}
	}
	switch {
	case p.kind == versionKind:
		doc.version = scalarText(value)
	case !p.internal:
		doc.props[p.name] = scalarText(value)
	}
	return nil
}

// textSet reads a list property. A&AI stores it as a set: duplicates collapse and the order is lost.
func (d reader) textSet(t *nodeType, p *property, value any) []string {
	items, array := value.([]any)
	if !array {
		d.expect(t, p, value, false)
		items = []any{value}
	}
	var set []string
	for _, item := range items {
		if item == nil {
			continue
		}
		_, text := item.(string)
		d.expect(t, p, item, text)
		set = append(set, scalarText(item))
	}
	slices.Sort(set)
	unique := slices.Compact(slices.Clone(set))
	if len(unique) < len(set) {
		d.report(DuplicateLabel, "%s.%s holds a value more than once", t.name, p.name)
	}
	return unique
}

// container reads nested children; anything but an object counts as present and empty.
func (d reader) container(doc *document, t *nodeType, p *property, value any) *apiError {
	child := typeContained(p.name, d.schema)
	doc.children[p.name] = nil
	for _, raw := range d.members(t, p, value, child.name) {
		nested, err := d.document(child, raw)
		if err != nil {
			return err
		}
		doc.children[p.name] = append(doc.children[p.name], nested)
	}
	return nil
}

// members unwraps {"tenant":[{...}]}; a single object may stand for a list of one.
func (d reader) members(t *nodeType, p *property, value any, name string) []map[string]any {
	wrapper, ok := value.(map[string]any)
	d.expect(t, p, value, ok)
	for _, key := range sortedKeys(wrapper) {
		if key != name {
			d.report(UnknownProperty, "%s.%s has no property %q", t.name, p.name, key)
		}
	}
	return objectsOf(wrapper[name])
}

// objectsOf returns the objects in a list, or a single object as a list of one.
func objectsOf(value any) []map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return []map[string]any{value}
	case []any:
		var list []map[string]any
		for _, item := range value {
			if o, ok := item.(map[string]any); ok {
				list = append(list, o)
			}
		}
		return list
	default:
		return nil
	}
}

func (d reader) expect(t *nodeType, p *property, value any, ok bool) {
	if !ok {
		d.report(WrongType, "%s.%s got %s", t.name, p.name, jsonType(value))
	}
}

func (d reader) reportUnknown(t *nodeType, name string, raw map[string]any) {
	_, nested := raw[name].(map[string]any)
	if nested && len(raw) == 1 && name == t.name {
		d.report(WrappedBody, "the body is wrapped in %q", name)
		return
	}
	for _, p := range t.properties {
		if plainLetters(p.name) == plainLetters(name) && p.name != name {
			d.report(WrongCase, "%s has %q, not %q", t.name, p.name, name)
			return
		}
	}
	d.report(UnknownProperty, "%s has no property %q", t.name, name)
}

// plainLetters removes what people get wrong in a name: case and separators.
func plainLetters(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// scalarText returns the text MOXy makes of a value for a string property; that of an object is empty.
func scalarText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case json.Number:
		return value.String()
	default:
		return ""
	}
}

func isBool(value any) bool {
	_, ok := value.(bool)
	return ok
}

func jsonType(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// missing lists what a PUT must have and has not, in the schema's order, children included. Key properties of the node
// itself come from the URI before this is asked.
func (doc *document) missing(t *nodeType, schema int) []string {
	var names []string
	for _, p := range t.properties {
		_, given := doc.props[p.name]
		if p.required && !given {
			names = append(names, p.name)
		}
		if _, partner := doc.props[p.requires]; given && p.requires != "" && !partner {
			names = append(names, p.requires)
		}
		for _, child := range doc.children[p.name] {
			names = append(names, child.missing(typeContained(p.name, schema), schema)...)
		}
	}
	return names
}
