package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// view is how a GET wants its answer.
type view struct {
	schema        int
	depth         int
	nodesOnly     bool // without relationship-list
	skipRelatedTo bool // without related-to-property
}

// allDepths is deeper than the schema.
const allDepths = 1 << 16

// selection is what a GET asks for besides the path.
type selection struct {
	view
	count   bool // format=count
	filters map[string][]string
	index   int // page, 1 is the first; 0 means no paging
	size    int
	totals  bool // total-results and total-pages wanted
}

// parseSelection reads the query parameters of a GET on nodes of a type. Whatever is not an option is a filter by
// property: values of one name are alternatives, names must all match.
func parseSelection(parameters []parameter, t *nodeType, schema int) (selection, *apiError) {
	s := selection{view: view{schema: schema}, filters: map[string][]string{}, totals: true}
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

func (s *selection) set(p parameter, t *nodeType) *apiError {
	switch p.name {
	case "depth":
		return s.setDepth(p.value)
	case "nodes-only":
		s.nodesOnly = true
	case "skip-related-to":
		s.skipRelatedTo = p.value == "true"
	case "format":
		s.count = p.value == "count"
		if !s.count {
			return fail(codeBadParameter, "format %s is not available here, only count is", p.value)
		}
	case "resultIndex":
		return positive(&s.index, p)
	case "resultSize":
		return positive(&s.size, p)
	case "includeTotalCount":
		s.totals = p.value != "false"
	case "cleanup":
	default:
		return s.filter(p, t)
	}
	return nil
}

func (s *selection) setDepth(value string) *apiError {
	if value == "all" {
		s.depth = allDepths
		return nil
	}
	depth, err := strconv.Atoi(value)
	if err != nil || depth < 0 {
		return fail(codeBadDepth, "")
	}
	s.depth = depth
	return nil
}

// positive reads a page number or size. A&AI answers a bad one with an internal error.
func positive(into *int, p parameter) *apiError {
	n, err := strconv.Atoi(p.value)
	if err != nil || n < 1 {
		return fail(codeInternal, "%s %q is not a positive number", p.name, p.value)
	}
	*into = n
	return nil
}

func (s *selection) filter(p parameter, t *nodeType) *apiError {
	known := t.property(p.name)
	if known == nil || known.kind == containerKind || known.kind == relationsKind {
		return fail(codeInvalidInput, "property: %s not found on %s", p.name, t.name)
	}
	s.filters[p.name] = append(s.filters[p.name], p.value)
	return nil
}

// matches reports whether a node passes all filters.
func (s *selection) matches(n *node) bool {
	for name, values := range s.filters {
		if !slices.ContainsFunc(values, func(v string) bool { return n.holds(name, v) }) {
			return false
		}
	}
	return true
}

// holds reports whether a property has a value; a list has each of its items.
func (n *node) holds(name, value string) bool {
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

// page cuts the wanted page out of all results.
func (s *selection) page(all []*node) []*node {
	if s.index == 0 {
		return all
	}
	first := (s.index - 1) * s.size
	if s.index-1 > len(all)/s.size || first >= len(all) {
		return nil
	}
	return all[first:min(first+s.size, len(all))]
}

// get answers GET on a node, a container or a relationship-list. Nothing found, an empty container and a page past the
// end are all 404.
func (s *Simulator) get(q *request) reply {
	target, err := parsePath(q.path, q.schema)
	if err != nil {
		return q.refuse(err.at(q.method, q.versioned()))
	}
	if target.scope == listScope {
		return s.getRelationships(q, target)
	}
	want, err := parseSelection(q.parameters, target.member, q.schema)
	if err != nil {
		return q.refuse(err.at(q.method, q.path))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := slices.DeleteFunc(s.graph.lookup(target), func(n *node) bool { return !want.matches(n) })
	found := want.page(all)
	if len(found) == 0 {
		return q.refuse(absent(target.member, q.path).at(q.method, q.path))
	}
	rep := s.graph.present(q, target, want, found)
	if want.index > 0 && want.totals {
		rep.header.Set("total-results", strconv.Itoa(len(all)))
		rep.header.Set("total-pages", strconv.Itoa((len(all)+want.size-1)/want.size))
	}
	return rep
}

// lookup returns the nodes a path names: at most one for a node, all members of a container.
func (g *graph) lookup(target resource) []*node {
	if target.scope == containerScope {
		return g.list(target.uri())
	}
	if n := g.nodes[target.uri()]; n != nil {
		return []*node{n}
	}
	return nil
}

func (g *graph) present(q *request, target resource, want selection, found []*node) reply {
	var rep reply
	switch {
	case want.count:
		counts := object{{target.member.name, len(found)}}
		rep = q.answer(http.StatusOK, "results", object{{"results", []object{counts}}})
	case target.scope == containerScope:
		rep = q.answer(http.StatusOK, target.member.container, object{{target.member.name, g.documents(found, want.view)}})
	default:
		rep = q.answer(http.StatusOK, target.member.name, g.document(found[0], want.view))
	}
	rep.header.Set("vertex-id", strconv.FormatUint(found[0].id, 10))
	return rep
}

func (s *Simulator) getRelationships(q *request, target resource) reply {
	s.mu.RLock()
	defer s.mu.RUnlock()
	path := strings.TrimSuffix(strings.TrimSuffix(q.path, "/"), "/"+listSegment)
	n := s.graph.nodes[target.uri()]
	if n == nil {
		return q.refuse(absent(target.member, path).at("GET_RELATIONSHIP", path))
	}
	list := s.graph.relationships(n, view{schema: q.schema})
	if len(list) == 0 {
		err := fail(codeNoRelationship, "No relationship found of type %s at the given URI: %s/%s",
			target.member.name, readable(path), listSegment)
		return q.refuse(err.at("GET_RELATIONSHIP", path))
	}
	return q.answer(http.StatusOK, listSegment, object{{relationshipSegment, list}})
}

// documents renders nodes for an answer.
func (g *graph) documents(nodes []*node, v view) []object {
	list := make([]object, len(nodes))
	for i, n := range nodes {
		list[i] = g.document(n, v)
	}
	return list
}

// document renders a node in schema order, with as many levels of children as wanted. What is not set is left out.
func (g *graph) document(n *node, v view) object {
	var doc object
	for _, p := range n.place.typ.properties {
		if value := g.value(n, p, v); value != nil {
			doc = append(doc, field{p.name, value})
		}
	}
	return doc
}

func (g *graph) value(n *node, p property, v view) any {
	switch p.kind {
	case versionKind:
		return n.version
	case textListKind:
		if set, ok := n.props[p.name].([]string); ok {
			return shuffled(set, n.place.uri())
		}
	case containerKind:
		return g.childrenOf(n, p.name, v)
	case relationsKind:
		if list := g.relationships(n, v); len(list) > 0 && !v.nodesOnly {
			return object{{relationshipSegment, list}}
		}
	case textKind, booleanKind, integerKind:
		return n.props[p.name]
	}
	return nil
}

func (g *graph) childrenOf(n *node, container string, v view) any {
	child := typeContained(container, v.schema)
	if v.depth == 0 || child == nil {
		return nil
	}
	members := g.list(containerURI(child, n.place))
	if len(members) == 0 {
		return nil
	}
	v.depth--
	return object{{child.name, g.documents(members, v)}}
}

// shuffled returns a set in an order that is neither the one in which it was written nor the alphabet's, but the same
// every time: A&AI promises no order, and a test should see that without being random.
func shuffled(set []string, salt string) []string {
	list := slices.Clone(set)
	slices.SortFunc(list, func(a, b string) int {
		return strings.Compare(digest(salt, a)+a, digest(salt, b)+b)
	})
	return list
}

// relationships renders the edges of a node whose other end the schema version knows.
func (g *graph) relationships(n *node, v view) []object {
	uri := n.place.uri()
	edges := g.visibleEdges(uri, v.schema)
	list := make([]object, len(edges))
	for i, e := range edges {
		list[i] = relationshipTo(g.nodes[e.other(uri)], e.rule.label, v)
	}
	return list
}

func relationshipTo(n *node, label string, v view) object {
	t := n.place.typ
	doc := object{
		{"related-to", t.name},
		{"relationship-label", label},
		{"related-link", "/aai/v" + strconv.Itoa(v.schema) + n.place.uri()},
		{"relationship-data", n.place.pathKeys()},
	}
	if name, ok := n.props[t.nameProperty].(string); ok && !v.skipRelatedTo {
		doc = append(doc, field{"related-to-property", []object{
			{{"property-key", t.name + "." + t.nameProperty}, {"property-value", name}},
		}})
	}
	return doc
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
