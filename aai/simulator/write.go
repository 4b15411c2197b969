package simulator

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// verb is what a write does, by the name that A&AI uses in its messages.
type verb string

const (
	put        verb = "PUT"
	mergePatch verb = "MERGE_PATCH"
	remove     verb = "DELETE"
	putEdge    verb = "PUT_EDGE"
	deleteEdge verb = "DELETE_EDGE"
)

// anyVersion is accepted by DELETE in place of the node's resource-version by default (aai-common AAIConstants).
const anyVersion = "38cf3090-6a0c-4e9d-8142-4332a7352846"

// operation is one write, checked as far as that goes without looking at the graph.
type operation struct {
	verb    verb
	path    string // as messages quote it
	target  resource
	doc     *document      // of put
	patch   map[string]any // of mergePatch
	link    relationship   // of putEdge and deleteEdge
	version string         // resource-version parameter of remove
	report  reporter
}

// effect is what a write did.
type effect struct {
	status int
	vertex uint64 // id of the node written, 0 if none
}

// prepare checks path and body of a write: unknown names, JSON, required properties, keys that contradict the URI.
func prepare(v verb, path string, schema int, raw map[string]any, report reporter) (*operation, *apiError) {
	target, err := parsePath(path, schema)
	if err != nil {
		return nil, err
	}
	op := &operation{verb: v, path: path, target: target, report: report}
	if target.scope != v.scope() {
		return nil, fail(codeInvalidInput, "%s not a valid path for %s", path, v)
	}
	d := reader{schema: schema, report: report}
	switch v {
	case put:
		op.doc, err = d.document(target.member, raw)
		if err == nil {
			err = op.doc.complete(target.node, schema)
		}
	case mergePatch:
		op.patch = raw
		err = d.patch(target.node, raw)
	case putEdge, deleteEdge:
		op.link, err = d.relationship(raw)
	case remove:
	}
	return op, err
}

func (v verb) scope() scope {
	if v == putEdge || v == deleteEdge {
		return relationshipScope
	}
	return nodeScope
}

// complete puts the keys of the URI into the document and checks what a PUT must have.
func (doc *document) complete(p *place, schema int) *apiError {
	if err := doc.identify(p); err != nil {
		return err
	}
	missing := doc.missing(p.typ, schema)
	if len(missing) == 0 {
		return nil
	}
	return fail(codeInvalidInput, "Missing required property: %s", strings.Join(missing, ",Missing required property: "))
}

// identify makes the key properties those of the URI; the body may repeat but not contradict them.
func (doc *document) identify(p *place) *apiError {
	for i, key := range p.typ.keys() {
		if given, ok := doc.props[key]; ok && given != p.keys[i] {
			return fail(codeInvalidInput, "uri and payload keys don't match")
		}
		doc.props[key] = p.keys[i]
	}
	return nil
}

// patch checks the body of a PATCH, which is read once by itself before it is merged.
func (d reader) patch(p *place, raw map[string]any) *apiError {
	doc, err := d.document(p.typ, raw)
	if err != nil {
		return err
	}
	if len(doc.children) > 0 {
		return fail(codeInvalidInput, "maximum depth exceeded: a patch cannot hold child nodes")
	}
	return doc.identify(p)
}

// apply carries an operation out. After an error the transaction must be rolled back.
func (t *tx) apply(op *operation) (effect, *apiError) {
	var done effect
	var err *apiError
	switch op.verb {
	case put:
		done, err = t.put(op)
	case mergePatch:
		done, err = t.patch(op)
	case remove:
		done, err = t.delete(op)
	case putEdge:
		done, err = t.putEdge(op)
	case deleteEdge:
		done, err = t.deleteEdge(op)
	}
	if err != nil {
		return effect{}, err.at(string(op.verb), op.path)
	}
	return done, nil
}

// find returns the node an operation is about.
func (t *tx) find(op *operation) (*node, *apiError) {
	n := t.nodes[op.target.node.uri()]
	if n == nil {
		return nil, absent(op.target.member, op.path)
	}
	return n, nil
}

func absent(t *nodeType, path string) *apiError {
	return fail(codeNodeNotFound, "No Node of type %s found at: %s", t.name, readable(path))
}

func (t *tx) put(op *operation) (effect, *apiError) {
	s := &storing{tx: t}
	created, err := s.store(op.target.node, op.doc)
	if err != nil {
		return effect{}, err
	}
	for _, step := range s.links {
		if err := step(); err != nil {
			return effect{}, err
		}
	}
	done := effect{status: http.StatusOK, vertex: t.nodes[op.target.node.uri()].id}
	if created {
		done.status = http.StatusCreated
	}
	if !s.changed {
		op.report(UnchangedPut, "%s already is what was sent", op.path)
	}
	return done, nil
}

// storing is a PUT on its way through a document and its children. Relationships come last, when all nodes exist.
type storing struct {
	*tx
	links   []func() *apiError
	changed bool
}

// store writes one document and its children and reports whether the node is new.
func (s *storing) store(p *place, doc *document) (created bool, _ *apiError) {
	uri := p.uri()
	old := s.nodes[uri]
	if err := checkVersion(p, old, doc.version); err != nil {
		return false, err
	}
	if p.parent != nil && s.nodes[p.parent.uri()] == nil {
		return false, fail(codeNodeNotFound, "No parent Node of type %s for %s",
			p.parent.typ.name, strings.TrimPrefix(readable(uri), "/"))
	}
	s.replace(p, old, doc.props)
	for _, container := range slices.Sorted(maps.Keys(doc.children)) {
		if err := s.storeChildren(p, typeContained(container, s.schema), doc.children[container]); err != nil {
			return false, err
		}
	}
	if doc.linked {
		s.links = append(s.links, func() *apiError {
			changed, err := s.relate(p, doc.links)
			s.changed = s.changed || changed
			return err
		})
	}
	return old == nil, nil
}

// replace makes a node's properties those given; booleans that are never null get their default.
func (s *storing) replace(p *place, old *node, props map[string]any) {
	n := &node{place: p, props: withDefaults(p.typ, props)}
	if old != nil {
		n.id = old.id
	}
	s.changed = s.changed || old == nil || !reflect.DeepEqual(old.props, n.props)
	s.save(n, true)
}

func withDefaults(t *nodeType, props map[string]any) map[string]any {
	for _, p := range t.properties {
		if _, given := props[p.name]; p.fallback && !given {
			props[p.name] = false
		}
	}
	return props
}

// storeChildren writes the children of one container. They are the full set: the others are deleted, which A&AI allows
// only to applications on a list, by type of the parent.
func (s *storing) storeChildren(parent *place, t *nodeType, docs []*document) *apiError {
	named := map[string]bool{}
	for _, doc := range docs {
		p := &place{typ: t, parent: parent}
		for _, key := range t.keys() {
			text, _ := doc.props[key].(string)
			p.keys = append(p.keys, text)
		}
		named[p.uri()] = true
		if _, err := s.store(p, doc); err != nil {
			return err
		}
	}
	for _, n := range s.list(containerURI(t, parent)) {
		if named[n.place.uri()] {
			continue
		}
		if !slices.Contains(s.implied, parent.typ.name) && !slices.Contains(s.implied, "*") {
			return fail(codeImplicitDeleteBan, "%s", n.place.uri())
		}
		if err := s.drop(n); err != nil {
			return err
		}
		s.changed = true
	}
	return nil
}

// checkVersion applies the resource-version rules of PUT: none on create, the current one on update.
func checkVersion(p *place, old *node, sent string) *apiError {
	switch {
	case old == nil && sent != "":
		return fail(codeVersionOnCreate, "resource-version passed for create of %s", p.local())
	case old != nil && sent == "":
		return fail(codeVersionRequired, "resource-version not passed for update of %s", p.local())
	case old != nil && sent != old.version:
		return fail(codeVersionMismatch, "resource-version MISMATCH for update of %s", p.local())
	}
	return nil
}

// patch merges into the stored document and writes the result, as A&AI does: no resource-version is asked for, nothing
// is required, and relationships change only when the patch names them.
func (t *tx) patch(op *operation) (effect, *apiError) {
	n, err := t.find(op)
	if err != nil {
		return effect{}, err
	}
	stored := n.asJSON()
	if op.patch[listSegment] != nil { // else leave thousands of them unread
		stored[listSegment] = t.relationshipsAsJSON(n)
	}
	doc, err := reader{schema: t.schema, report: ignore}.document(n.place.typ, merge(stored, op.patch))
	if err == nil {
		err = doc.identify(n.place)
	}
	if err != nil {
		return effect{}, err
	}
	s := &storing{tx: t}
	s.replace(n.place, n, doc.props)
	if doc.linked {
		changed, err := t.relate(n.place, doc.links)
		if err != nil {
			return effect{}, err
		}
		s.changed = s.changed || changed
	}
	if !s.changed {
		op.report(UnchangedPatch, "%s already is what was sent", op.path)
	}
	return effect{status: http.StatusOK, vertex: n.id}, nil
}

// asJSON returns the properties of a node as decoded JSON.
func (n *node) asJSON() map[string]any {
	stored := map[string]any{}
	for name, value := range n.props {
		switch value := value.(type) {
		case []string:
			list := make([]any, len(value))
			for i, item := range value {
				list[i] = item
			}
			stored[name] = list
		case int64:
			stored[name] = json.Number(strconv.FormatInt(value, 10))
		default:
			stored[name] = value
		}
	}
	return stored
}

// relationshipsAsJSON returns the relationship-list of a node as decoded JSON.
func (t *tx) relationshipsAsJSON(n *node) map[string]any {
	edges := t.visibleEdges(n.place.uri(), t.schema)
	links := make([]any, len(edges))
	for i, e := range edges {
		links[i] = map[string]any{"related-link": e.other(n.place.uri()), "relationship-label": e.rule.label}
	}
	return map[string]any{relationshipSegment: links}
}

// merge applies a merge patch to a document (RFC 7396).
func merge(target, patch map[string]any) map[string]any {
	merged := maps.Clone(target)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range patch {
		nested, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, name)
		case isObject:
			inner, _ := merged[name].(map[string]any)
			merged[name] = merge(inner, nested)
		default:
			merged[name] = value
		}
	}
	return merged
}
