package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// document is the body of a PUT or a PATCH, read as leniently as A&AI's MOXy unmarshaller does.
type document struct {
	props    map[string]any         // like those of a node
	version  string                 // resource-version as sent, empty for none
	children map[string][]*document // by container; a container that is present but empty has an entry
	links    []relationship
	hasLinks bool // a relationship-list was present, even an empty one
}

// relationship is one entry of a relationship-list, or the body for .../relationship-list/relationship.
type relationship struct {
	relatedTo string            // type of the other end
	label     string            // empty for the only one there is
	link      string            // path of the other end
	data      map[string]string // "generic-vnf.vnf-id" -> "vnf-1", used when there is no link
}

// decodeObject decodes a body that must be a JSON object. Numbers keep their digits. The last of duplicate keys takes effect.
func decodeObject(body []byte) (map[string]any, *apiError) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("unexpected data after the JSON value")
	}
	if err != nil {
		return nil, newAPIError(errInvalidInput, "Could not unmarshall: %v", err)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case []any:
		return nil, crashError()
	default:
		return nil, newAPIError(errInvalidInput, "Could not unmarshall: not an object")
	}
}

// document reads the body of a node. It drops properties that the schema does not have, and converts or drops values of the wrong
// type. Only an array in place of a string is an error.
func (q *request) document(t *nodeType, raw map[string]any) (*document, *apiError) {
	doc := &document{props: map[string]any{}, children: map[string][]*document{}}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		p := t.property(name)
		if p == nil || p.kind == containerKind && typeContained(name, q.schema) == nil {
			q.reportUnknown(t, name, raw)
			continue
		}
		if err := q.field(doc, t, p, raw[name]); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

func (q *request) field(doc *document, t *nodeType, p *property, value any) *apiError {
	if value == nil {
		return nil
	}
	switch p.kind {
	case textKind, versionKind:
		return q.text(doc, t, p, value)
	case booleanKind:
		_, isBoolean := value.(bool)
		q.checkType(t, p, value, isBoolean)
		if text := scalarText(value); text == "true" || text == "false" {
			doc.props[p.name] = text == "true"
		}
	case integerKind:
		_, isNumber := value.(json.Number)
		q.checkType(t, p, value, isNumber)
		if n, err := strconv.ParseInt(scalarText(value), 10, 64); err == nil {
			doc.props[p.name] = n
		}
	case textListKind:
		if set := q.textSet(t, p, value); len(set) > 0 {
			doc.props[p.name] = set
		}
	case containerKind:
		return q.children(doc, t, p, value)
	case relationsKind:
		return q.relationshipList(doc, t, p, value)
	}
	return nil
}

func (q *request) text(doc *document, t *nodeType, p *property, value any) *apiError {
	_, isText := value.(string)
	q.checkType(t, p, value, isText)
	if _, isArray := value.([]any); isArray {
		return crashError()
	}
	switch {
	case p.kind == versionKind:
		doc.version = scalarText(value)
	case !p.internal:
		doc.props[p.name] = scalarText(value)
	}
	return nil
}

// textSet reads a list property. A&AI stores a set: it drops duplicates and the order.
func (q *request) textSet(t *nodeType, p *property, value any) []string {
	items, isArray := value.([]any)
	if !isArray {
		q.checkType(t, p, value, false)
		items = []any{value}
	}
	var set []string
	for _, item := range items {
		if item == nil {
			continue
		}
		_, isText := item.(string)
		q.checkType(t, p, item, isText)
		set = append(set, scalarText(item))
	}
	slices.Sort(set)
	unique := slices.Compact(slices.Clone(set))
	if len(unique) < len(set) {
		q.reportf(DuplicateLabel, "%s.%s holds a value more than once", t.name, p.name)
	}
	return unique
}

// children reads a container. Anything but an object counts as present and empty.
func (q *request) children(doc *document, t *nodeType, p *property, value any) *apiError {
	child := typeContained(p.name, q.schema)
	doc.children[p.name] = nil
	for _, raw := range q.members(t, p, value, child.name) {
		nested, err := q.document(child, raw)
		if err != nil {
			return err
		}
		doc.children[p.name] = append(doc.children[p.name], nested)
	}
	return nil
}

// relationshipList reads a relationship-list. Anything but an object counts as present and empty, which removes all edges.
func (q *request) relationshipList(doc *document, t *nodeType, p *property, value any) *apiError {
	doc.hasLinks = true
	for _, raw := range q.members(t, p, value, edgeSegment) {
		r, err := q.relationship(raw)
		if err != nil {
			return err
		}
		doc.links = append(doc.links, r)
	}
	return nil
}

// members unwraps {"tenant":[{...}]}.
func (q *request) members(t *nodeType, p *property, value any, name string) []map[string]any {
	wrapper, isObject := value.(map[string]any)
	q.checkType(t, p, value, isObject)
	for _, key := range slices.Sorted(maps.Keys(wrapper)) {
		if key != name {
			q.reportf(UnknownProperty, "%s.%s has no property %q", t.name, p.name, key)
		}
	}
	return objectsOf(wrapper[name])
}

// objectsOf returns the objects in a list. A single object stands for a list of one.
func objectsOf(value any) []map[string]any {
	items, isArray := value.([]any)
	if !isArray {
		items = []any{value}
	}
	var list []map[string]any
	for _, item := range items {
		if o, isObject := item.(map[string]any); isObject {
			list = append(list, o)
		}
	}
	return list
}

// relationshipFields are the fields of a relationship. The last two are written by the server and ignored when read.
var relationshipFields = []string{
	"related-to", "relationship-label", "related-link", "relationship-data", "related-to-property", "relationship-properties",
}

func (q *request) relationship(raw map[string]any) (relationship, *apiError) {
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if !slices.Contains(relationshipFields, name) {
			q.reportf(UnknownProperty, "relationship has no property %q", name)
		}
	}
	for _, name := range relationshipFields[:3] {
		switch raw[name].(type) {
		case nil, string:
		case []any:
			return relationship{}, crashError()
		default:
			q.reportf(WrongType, "relationship.%s got %s", name, jsonKind(raw[name]))
		}
	}
	r := relationship{
		relatedTo: scalarText(raw["related-to"]), label: scalarText(raw["relationship-label"]),
		link: scalarText(raw["related-link"]), data: map[string]string{},
	}
	for _, pair := range objectsOf(raw["relationship-data"]) {
		r.data[scalarText(pair["relationship-key"])] = scalarText(pair["relationship-value"])
	}
	return r, nil
}

// target returns the place that a relationship points to: by its link, else by type and keys.
func (r relationship) target(schema int) (*place, *apiError) {
	if r.link == "" {
		return r.targetByKeys(r.relatedTo, schema)
	}
	found, err := parsePath(trimVersion(r.link), schema)
	if err != nil || found.scope != nodeScope {
		return nil, newAPIError(errInvalidInput, "related-link %q is not the path of a node", r.link)
	}
	return found.node, nil
}

// targetByKeys collects the keys of the whole path.
func (r relationship) targetByKeys(name string, schema int) (*place, *apiError) {
	t := typeNamed(name, schema)
	if t == nil {
		return nil, newAPIError(errInvalidInput, "relationship names no target: related-to %q", r.relatedTo)
	}
	var parent *place
	if t.parent != "" {
		var err *apiError
		if parent, err = r.targetByKeys(t.parent, schema); err != nil {
			return nil, err
		}
	}
	var keys []string
	for _, key := range t.keys() {
		value := r.data[t.name+"."+key]
		if value == "" {
			return nil, newAPIError(errInvalidInput, "relationship-data lacks %s.%s", t.name, key)
		}
		keys = append(keys, value)
	}
	return newPlace(t, parent, keys...), nil
}

// check validates the document of a PUT or a PATCH, and sets its key properties to those of the URI. Keys in the body must equal
// them.
func (doc *document) check(v verb, p *place, schema int) *apiError {
	if v == mergePatch && len(doc.children) > 0 {
		return newAPIError(errInvalidInput, "maximum depth exceeded: a patch cannot hold child nodes")
	}
	for i, key := range p.typ.keys() {
		if given, ok := doc.props[key]; ok && given != p.keys[i] {
			return newAPIError(errInvalidInput, "uri and payload keys don't match")
		}
		doc.props[key] = p.keys[i]
	}
	if missing := doc.missing(p.typ, schema); v == put && len(missing) > 0 {
		return newAPIError(errInvalidInput, "Missing required property: %s", strings.Join(missing, ",Missing required property: "))
	}
	return nil
}

// missing returns the names of the required properties that a PUT lacks, in the schema's order, children included.
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

// scalarText returns the text to which MOXy converts a value of a string property; empty for an object.
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

// jsonKind names the type of a decoded JSON value.
func jsonKind(value any) string {
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
