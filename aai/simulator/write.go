package simulator

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// verb is the kind of a write, by its name in A&AI's messages.
type verb string

const (
	put        verb = "PUT"
	mergePatch verb = "MERGE_PATCH"
	remove     verb = "DELETE"
	putEdge    verb = "PUT_EDGE"
	deleteEdge verb = "DELETE_EDGE"
)

// operation is one write, validated without the inventory.
type operation struct {
	verb    verb
	path    string // as messages quote it
	place   *place
	doc     *document      // of put and mergePatch
	raw     map[string]any // what doc was read from
	link    relationship   // of putEdge and deleteEdge
	version string         // parameter resource-version of remove
}

// writeResult is the result of a write.
type writeResult struct {
	status int
	vertex uint64 // id of the node written, 0 for none
}

// prepare validates path and body of a write: unknown names, required properties, keys that contradict the URI.
func (q *request) prepare(v verb, path string, parameters []parameter, raw map[string]any) (*operation, *apiError) {
	tgt, err := parsePath(path, q.schema)
	if err != nil {
		return nil, err
	}
	edges := v == putEdge || v == deleteEdge
	if edges != (tgt.scope == edgeScope) || !edges && tgt.scope != nodeScope {
		return nil, newAPIError(errInvalidInput, "%s not a valid path for %s", path, v)
	}
	op := &operation{verb: v, path: path, place: tgt.node, raw: raw}
	for _, p := range parameters {
		if p.name == "resource-version" {
			op.version = p.value
		}
	}
	switch v {
	case put, mergePatch:
		if op.doc, err = q.document(tgt.typ, raw); err == nil {
			err = op.doc.check(v, tgt.node, q.schema)
		}
	case putEdge, deleteEdge:
		op.link, err = q.relationship(raw)
	case remove:
	}
	return op, err
}

// apply executes an operation. After an error the caller must roll back the transaction.
func (t *tx) apply(q *request, op *operation) (done writeResult, err *apiError) {
	n := t.nodes[op.place.uri]
	switch {
	case op.verb == put:
		done, err = t.put(q, op)
	case n == nil:
		err = nodeNotFound(op.place.typ, op.path)
	case op.verb == mergePatch:
		done, err = t.patch(q, n, op)
	case op.verb == remove:
		done, err = writeResult{status: http.StatusNoContent}, t.delete(n, op.version)
	case op.verb == putEdge:
		done, err = writeResult{status: http.StatusOK}, t.putEdge(n, op.link)
	case op.verb == deleteEdge:
		done, err = writeResult{status: http.StatusNoContent}, t.deleteEdge(n, op.link)
	}
	if err != nil {
		return writeResult{}, err.forRequest(string(op.verb), op.path)
	}
	return done, nil
}

func nodeNotFound(t *nodeType, path string) *apiError {
	return newAPIError(errNodeNotFound, "No Node of type %s found at: %s", t.name, unescaped(path))
}

func (t *tx) put(q *request, op *operation) (writeResult, *apiError) {
	created := t.nodes[op.place.uri] == nil
	s := &putOperation{tx: t}
	if err := s.store(op.place, op.doc); err != nil {
		return writeResult{}, err
	}
	for _, l := range s.links {
		if err := s.setEdges(l.place, l.links); err != nil {
			return writeResult{}, err
		}
	}
	if !s.changed {
		q.reportf(UnchangedPut, "%s already is what was sent", op.path)
	}
	done := writeResult{http.StatusOK, t.nodes[op.place.uri].id}
	if created {
		done.status = http.StatusCreated
	}
	return done, nil
}

// putOperation stores a document and its children. It collects the relationships, which are stored after all nodes.
type putOperation struct {
	*tx

	links   []placeLinks
	changed bool
}

// placeLinks is a relationship-list that has not been stored yet.
type placeLinks struct {
	place *place
	links []relationship
}

// store writes one document and its children.
func (s *putOperation) store(p *place, doc *document) *apiError {
	old := s.nodes[p.uri]
	if err := checkVersion(p, old, doc.version); err != nil {
		return err
	}
	if p.parent != nil && s.nodes[p.parent.uri] == nil {
		return newAPIError(errNodeNotFound, "No parent Node of type %s for %s", p.parent.typ.name, strings.TrimPrefix(unescaped(p.uri), "/"))
	}
	s.replaceProperties(p, doc.props)
	for _, container := range slices.Sorted(maps.Keys(doc.children)) {
		if err := s.storeChildren(p, typeContained(container, s.schema), doc.children[container]); err != nil {
			return err
		}
	}
	if doc.hasLinks {
		s.links = append(s.links, placeLinks{p, doc.links})
	}
	return nil
}

// checkVersion checks the resource-version of a PUT: none on creation, the current one on update.
func checkVersion(p *place, old *node, sent string) *apiError {
	switch {
	case old == nil && sent != "":
		return newAPIError(errVersionOnCreate, "resource-version passed for create of %s", p.local())
	case old != nil && sent == "":
		return newAPIError(errVersionRequired, "resource-version not passed for update of %s", p.local())
	case old != nil && sent != old.version:
		return newAPIError(errVersionMismatch, "resource-version MISMATCH for update of %s", p.local())
	}
	return nil
}

// replaceProperties gives a node, which may be new, exactly these properties. Booleans with a default get it.
func (s *putOperation) replaceProperties(p *place, props map[string]any) {
	for _, known := range p.typ.properties {
		if _, given := props[known.name]; known.defaultsToFalse && !given {
			props[known.name] = false
		}
	}
	n := node{place: p}
	if old := s.nodes[p.uri]; old != nil {
		n = *old
	}
	s.changed = s.changed || !reflect.DeepEqual(n.props, props)
	n.props = props
	s.save(n)
}

// storeChildren writes the children of one container. They must be the full set: to omit one would delete it, which A&AI forbids
// to applications without an exception.
func (s *putOperation) storeChildren(parent *place, t *nodeType, docs []*document) *apiError {
	named := map[string]bool{}
	for _, doc := range docs {
		var keys []string
		for _, key := range t.keys() {
			text, _ := doc.props[key].(string)
			keys = append(keys, text)
		}
		p := newPlace(t, parent, keys...)
		named[p.uri] = true
		if err := s.store(p, doc); err != nil {
			return err
		}
	}
	for _, n := range s.list(containerURI(t, parent)) {
		if !named[n.place.uri] {
			return newAPIError(errImplicitDelete, "%s", n.place.uri)
		}
	}
	return nil
}

// setEdges replaces the edges of a node by those of a relationship-list: it adds missing ones and removes the others. It ignores
// edges to nodes of a type that the schema version does not have.
func (s *putOperation) setEdges(p *place, links []relationship) *apiError {
	wanted := make([]edge, len(links))
	for i, link := range links {
		var err *apiError
		if wanted[i], err = s.edgeFor(p, link); err != nil {
			return err
		}
	}
	for _, e := range s.nodes[p.uri].edges {
		if !slices.Contains(wanted, e) && s.nodes[e.other].place.typ.since <= s.schema {
			s.removeEdge(p.uri, e)
			s.changed = true
		}
	}
	for _, e := range wanted {
		s.changed = s.changed || !s.has(p.uri, e)
		if err := s.addEdge(p.uri, e); err != nil {
			return err
		}
	}
	return nil
}

// edgeFor returns the edge that an entry of a relationship-list stands for.
func (t *tx) edgeFor(p *place, link relationship) (edge, *apiError) {
	other, err := link.target(t.schema)
	if err != nil {
		return edge{}, err
	}
	rule := ruleBetween(p.typ, other.typ, link.label)
	switch {
	case t.nodes[other.uri] == nil:
		return edge{}, targetNotFound(other, other.uri)
	case rule == nil:
		return edge{}, newAPIError(errBadParameter, "No EdgeRule found for passed nodeTypes: %s, %s%s.", p.typ.name, other.typ.name, labelSuffix(link.label))
	case rule.containment:
		return edge{}, newAPIError(errContainmentEdge, "")
	}
	return edge{rule, other.uri}, nil
}

func targetNotFound(other *place, link string) *apiError {
	return newAPIError(errTargetNotFound, "Node of type %s. Could not find object at: %s", other.typ.name, link).withVariables(other.typ.name, link)
}

func labelSuffix(label string) string {
	if label == "" {
		return ""
	}
	return " with label " + label
}

// putEdge is PUT of .../relationship-list/relationship. Both ends get a new resource-version even when the edge exists.
func (t *tx) putEdge(n *node, link relationship) *apiError {
	other, err := link.target(t.schema)
	if err != nil {
		return err
	}
	rule := ruleBetween(n.place.typ, other.typ, link.label)
	switch {
	case t.nodes[other.uri] == nil && link.link == "":
		return targetNotFound(other, other.uri)
	case t.nodes[other.uri] == nil:
		return targetNotFound(other, link.link)
	case rule == nil || rule.containment:
		return edgeRuleNotFound(n.place, other, link.label)
	}
	t.touch(n.place.uri)
	t.touch(other.uri)
	return t.addEdge(n.place.uri, edge{rule, other.uri})
}

// deleteEdge is DELETE of .../relationship-list/relationship. It is no error when there is no such edge or target.
func (t *tx) deleteEdge(n *node, link relationship) *apiError {
	other, err := link.target(t.schema)
	if err != nil {
		return err
	}
	rule := ruleBetween(n.place.typ, other.typ, link.label)
	if rule == nil {
		return edgeRuleNotFound(n.place, other, link.label)
	}
	t.touch(n.place.uri)
	if e := (edge{rule, other.uri}); t.has(n.place.uri, e) {
		t.removeEdge(n.place.uri, e)
	}
	return nil
}

func edgeRuleNotFound(a, b *place, label string) *apiError {
	return newAPIError(errNoEdgeRule, "EdgeRuleNotFoundException: No rule found for node type: %s, node type: %s%s, type: COUSIN",
		a.typ.name, b.typ.name, labelSuffix(label))
}

// patch applies a merge patch (RFC 7396) that was read like a document. As in A&AI, no resource-version and no property is
// required. Relationships change only if the patch names them; a null relationship-list does not.
func (t *tx) patch(q *request, n *node, op *operation) (writeResult, *apiError) {
	props := maps.Clone(n.props)
	for name := range op.raw {
		delete(props, name)
	}
	maps.Copy(props, op.doc.props)
	s := &putOperation{tx: t}
	s.replaceProperties(n.place, props)
	list, isObject := op.raw[listSegment].(map[string]any)
	if _, named := list[edgeSegment]; op.doc.hasLinks && (named || !isObject) {
		if err := s.setEdges(n.place, op.doc.links); err != nil {
			return writeResult{}, err
		}
	}
	if !s.changed {
		q.reportf(UnchangedPatch, "%s already is what was sent", op.path)
	}
	return writeResult{http.StatusOK, n.id}, nil
}

// delete removes a node, and its children that go with it. The other end of each of their edges gets a new resource-version;
// the parent does not.
func (t *tx) delete(n *node, sent string) *apiError {
	switch sent {
	case "":
		return newAPIError(errVersionRequired, "resource-version not passed for delete of %s", n.place.typ.name)
	case n.version:
	default:
		return newAPIError(errVersionMismatch, "resource-version MISMATCH for delete of %s", n.place.typ.name)
	}
	removed := []*node{n}
	for _, child := range nodeTypes {
		children := t.list(containerURI(child, n.place))
		if len(children) > 0 && !child.deletedWithParent {
			return newAPIError(errDeleteBlocked, "Object is being reference by additional objects preventing it from being "+
				"deleted. Please clean up references from the following types [%s]", child.name)
		}
		removed = append(removed, children...)
	}
	for _, n := range removed {
		for _, e := range t.nodes[n.place.uri].edges {
			t.removeEdge(n.place.uri, e)
		}
		t.replace(n.place.uri, nil)
	}
	return nil
}
