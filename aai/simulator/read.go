package simulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// view selects the parts of nodes that an answer shows.
type view struct {
	schema        int
	depth         int  // levels of children
	nodesOnly     bool // without relationship-list
	skipRelatedTo bool // without related-to-property
}

// allDepths is deeper than the schema.
const allDepths = 1 << 16

// link returns the path of a place in the schema version of the view.
func (w view) link(p *place) string { return basePath + "/v" + strconv.Itoa(w.schema) + p.uri }

// selection holds the query options of a GET.
type selection struct {
	view

	format  string              // count, pathed or resource; empty for the plain document
	filters map[string][]string // by property: a node must have one of the values of each
	index   int                 // page, the first is 1; 0 for no paging
	size    int                 // of a page
	totals  bool                // total-results and total-pages are wanted
}

// parseSelection parses the query parameters of a GET on nodes of a type. A parameter that is no option is a filter by property.
func parseSelection(parameters []parameter, t *nodeType, w view) (selection, *apiError) {
	s := selection{view: w, filters: map[string][]string{}, totals: true}
	for _, p := range parameters {
		if err := s.set(p, t); err != nil {
			return s, err
		}
	}
	if s.index == 0 || s.size == 0 { // paging takes both
		s.index, s.size = 0, 0
	}
	return s, nil
}

// formats are the values of format= that are simulated.
var formats = []string{"count", "pathed", "resource"}

func (s *selection) set(p parameter, t *nodeType) *apiError {
	switch p.name {
	case "depth":
		return s.setDepth(p.value)
	case "nodes-only":
		s.nodesOnly = true
	case "skip-related-to":
		s.skipRelatedTo = p.value == "true"
	case "format":
		if !slices.Contains(formats, p.value) {
			return newAPIError(errBadParameter, "format %s is not available here, only %s", p.value, strings.Join(formats, ", "))
		}
		s.format = p.value
	case "resultIndex":
		return positive(&s.index, p)
	case "resultSize":
		return positive(&s.size, p)
	case "includeTotalCount":
		s.totals = p.value != "false"
	case "cleanup":
	default:
		known := t.property(p.name)
		if known == nil || known.kind == containerKind || known.kind == relationsKind {
			return newAPIError(errInvalidInput, "property: %s not found on %s", p.name, t.name)
		}
		s.filters[p.name] = append(s.filters[p.name], p.value)
	}
	return nil
}

func (s *selection) setDepth(value string) *apiError {
	var err error
	if s.depth, err = strconv.Atoi(value); value == "all" {
		s.depth, err = allDepths, nil
	}
	if err != nil || s.depth < 0 {
		return newAPIError(errBadDepth, "")
	}
	return nil
}

// positive parses the number or the size of a page. A&AI answers an invalid one with an internal error.
func positive(into *int, p parameter) *apiError {
	var err error
	if *into, err = strconv.Atoi(p.value); err != nil || *into < 1 {
		return newAPIError(errInternal, "%s %q is not a positive number", p.name, p.value)
	}
	return nil
}

// matches reports whether a node passes all filters.
func (s *selection) matches(n *node) bool {
	for name, values := range s.filters {
		if !slices.ContainsFunc(values, func(v string) bool { return n.hasValue(name, v) }) {
			return false
		}
	}
	return true
}

// hasValue reports whether a property has a value. A list has the value of each of its items.
func (n *node) hasValue(name, value string) bool {
	switch stored := n.props[name].(type) {
	case string:
		return stored == value
	case bool:
		return strconv.FormatBool(stored) == value
	case int64:
		return strconv.FormatInt(stored, 10) == value
	case []string:
		return slices.Contains(stored, value)
	default:
		return name == "resource-version" && n.version == value
	}
}

// page returns the wanted page of all results.
func (s *selection) page(all []*node) []*node {
	if s.index == 0 {
		return all
	}
	if s.index-1 > len(all)/s.size { // before the product overflows
		return nil
	}
	first := min((s.index-1)*s.size, len(all))
	return all[first : first+min(s.size, len(all)-first)]
}

// get answers GET of a node, a container or a relationship-list. A missing node, an empty container and a page past the end are
// all 404.
func (s *Simulator) get(q *request) reply {
	tgt, err := parsePath(q.path, q.schema)
	if err != nil {
		return err.forRequest(q.method, q.versioned()).reply()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.inventoryFor(q)
	if tgt.scope == listScope {
		return v.getRelationships(q, tgt)
	}
	want, err := parseSelection(q.parameters, tgt.typ, view{schema: q.schema})
	if err != nil {
		return err.forRequest(q.method, q.path).reply()
	}
	all := slices.DeleteFunc(v.lookup(tgt), func(n *node) bool { return !want.matches(n) })
	found := want.page(all)
	if len(found) == 0 {
		return nodeNotFound(tgt.typ, q.path).forRequest(q.method, q.path).reply()
	}
	rep := jsonReply(http.StatusOK, v.render(tgt, want, found))
	rep.header.Set("vertex-id", strconv.FormatUint(found[0].id, 10))
	if want.index > 0 && want.totals {
		rep.header.Set("total-results", strconv.Itoa(len(all)))
		rep.header.Set("total-pages", strconv.Itoa((len(all)+want.size-1)/want.size))
	}
	return rep
}

// render returns the answer for the nodes that were found.
func (v *inventory) render(tgt target, want selection, found []*node) object {
	switch {
	case want.format == "count":
		return object{{"results", []object{{{tgt.typ.name, len(found)}}}}}
	case want.format == "" && tgt.scope == nodeScope:
		return v.document(found[0], want.view)
	}
	list := make([]object, len(found))
	for i, n := range found {
		switch want.format {
		case "pathed":
			list[i] = object{{"resource-type", tgt.typ.name}, {"resource-link", want.link(n.place)}}
		case "resource":
			list[i] = object{{tgt.typ.name, v.document(n, want.view)}}
		default:
			list[i] = v.document(n, want.view)
		}
	}
	if want.format == "" {
		return object{{tgt.typ.name, list}}
	}
	return object{{"results", list}}
}

func (v *inventory) getRelationships(q *request, tgt target) reply {
	path := strings.TrimSuffix(strings.TrimSuffix(q.path, "/"), "/"+listSegment)
	n := v.nodes[tgt.node.uri]
	if n == nil {
		return nodeNotFound(tgt.typ, path).forRequest("GET_RELATIONSHIP", path).reply()
	}
	list := v.relationships(n, view{schema: q.schema})
	if len(list) == 0 {
		return newAPIError(errNoRelationship, "No relationship found of type %s at the given URI: %s/%s", tgt.typ.name, unescaped(path), listSegment).
			forRequest("GET_RELATIONSHIP", path).reply()
	}
	return jsonReply(http.StatusOK, object{{edgeSegment, list}})
}

// document returns the properties of a node that are set, in the order of the schema.
func (v *inventory) document(n *node, w view) object {
	var doc object
	for _, p := range n.place.typ.properties {
		if value := v.value(n, p, w); value != nil {
			doc = append(doc, field{p.name, value})
		}
	}
	return doc
}

func (v *inventory) value(n *node, p property, w view) any {
	switch p.kind {
	case versionKind:
		return n.version
	case textListKind:
		if set, ok := n.props[p.name].([]string); ok {
			return shuffled(set, n.place.uri)
		}
	case containerKind:
		if child := typeContained(p.name, w.schema); w.depth > 0 && child != nil {
			return v.members(child, n.place, w)
		}
	case relationsKind:
		if w.nodesOnly {
			return nil
		}
		if list := v.relationships(n, w); len(list) > 0 {
			return object{{edgeSegment, list}}
		}
	case textKind, booleanKind, integerKind:
		return n.props[p.name]
	}
	return nil
}

// members returns the children of one type, or nil if there are none.
func (v *inventory) members(child *nodeType, parent *place, w view) any {
	w.depth--
	var list []object
	for _, n := range v.list(containerURI(child, parent)) {
		list = append(list, v.document(n, w))
	}
	if len(list) == 0 {
		return nil
	}
	return object{{child.name, list}}
}

// shuffled returns a set in an order that is neither that of the write nor alphabetical, but deterministic: A&AI guarantees no
// order, and tests must notice that reproducibly.
func shuffled(set []string, salt string) []string {
	list := slices.Clone(set)
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(digest(salt, a)+a, digest(salt, b)+b) })
	return list
}

// relationships returns the edges of a node to types that the schema version has, in order of creation.
func (v *inventory) relationships(n *node, w view) []object {
	var list []object
	for _, e := range n.edges {
		other := v.nodes[e.other]
		t := other.place.typ
		if t.since > w.schema {
			continue
		}
		doc := object{
			{"related-to", t.name}, {"relationship-label", e.rule.label}, {"related-link", w.link(other.place)},
			{"relationship-data", other.place.pathKeys()},
		}
		if name, ok := other.props[t.nameProperty].(string); ok && !w.skipRelatedTo {
			doc = append(doc, field{"related-to-property", []object{
				{{"property-key", t.name + "." + t.nameProperty}, {"property-value", name}},
			}})
		}
		list = append(list, doc)
	}
	return list
}

// pathKeys returns every key on the way to a place as relationship-data.
func (p *place) pathKeys() []object {
	var list []object
	if p.parent != nil {
		list = p.parent.pathKeys()
	}
	for i, key := range p.typ.keys() {
		list = append(list, object{{"relationship-key", p.typ.name + "." + key}, {"relationship-value", p.keys[i]}})
	}
	return list
}

// object is a JSON object whose fields keep their order, because A&AI writes them in the order of the schema.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON writes the fields in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range o {
		name, err := encode(f.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(f.value)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode writes a value as JSON. It does not escape <, > and &, as A&AI does not.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// toMap converts an ordered document to maps.
func toMap(o object) map[string]any {
	m := map[string]any{}
	for _, f := range o {
		switch value := f.value.(type) {
		case object:
			m[f.name] = toMap(value)
		case []object:
			list := make([]map[string]any, len(value))
			for i, item := range value {
				list[i] = toMap(item)
			}
			m[f.name] = list
		default:
			m[f.name] = value
		}
	}
	return m
}
