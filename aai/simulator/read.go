package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// selection is what a GET asks for besides the path.
type selection struct {
	view
	format  string // count, pathed or resource; empty for the plain document
	filters map[string][]string
	index   int // page, 1 is the first; 0 means no paging
	size    int
	totals  bool // total-results and total-pages wanted
}

// parseSelection reads the query parameters of a GET on nodes of a type. Whatever is not an option is a filter by
// property: values of one name are alternatives, names must all match.
func parseSelection(parameters []parameter, t *nodeType, v view) (selection, *apiError) {
	s := selection{view: v, filters: map[string][]string{}, totals: true}
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
			return fail(codeBadParameter, "format %s is not available here, only %s", p.value, strings.Join(formats, ", "))
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
	if q.delay > s.readTimeout {
		return q.refuse(fail(codeReadTimeout, "").at(q.method, q.path))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.seen(q)
	if target.scope == listScope {
		return g.getRelationships(q, target)
	}
	want, err := parseSelection(q.parameters, target.member, q.view())
	if err != nil {
		return q.refuse(err.at(q.method, q.path))
	}
	all := slices.DeleteFunc(g.lookup(target), func(n *node) bool { return !want.matches(n) })
	found := want.page(all)
	if len(found) == 0 {
		return q.refuse(absent(target.member, q.path).at(q.method, q.path))
	}
	rep := g.present(q, target, want, found)
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
	case want.format != "":
		rep = q.answer(http.StatusOK, "results", object{{"results", g.results(want, found)}})
	case target.scope == containerScope:
		rep = q.answer(http.StatusOK, target.member.container, object{{target.member.name, g.documents(found, want.view)}})
	default:
		rep = q.answer(http.StatusOK, target.member.name, g.document(found[0], want.view))
	}
	rep.header.Set("vertex-id", strconv.FormatUint(found[0].id, 10))
	return rep
}

// results renders nodes in one of the formats.
func (g *graph) results(want selection, found []*node) []object {
	name := found[0].place.typ.name
	if want.format == "count" {
		return []object{{{name, len(found)}}}
	}
	list := make([]object, len(found))
	for i, n := range found {
		if want.format == "pathed" {
			list[i] = object{{"resource-type", name}, {"resource-link", want.link(n.place)}}
		} else {
			list[i] = object{{name, g.document(n, want.view)}}
		}
	}
	return list
}

func (g *graph) getRelationships(q *request, target resource) reply {
	path := strings.TrimSuffix(strings.TrimSuffix(q.path, "/"), "/"+listSegment)
	n := g.nodes[target.uri()]
	if n == nil {
		return q.refuse(absent(target.member, path).at("GET_RELATIONSHIP", path))
	}
	list := g.freeze(n, q.view()).relationships(q.view())
	if len(list) == 0 {
		err := fail(codeNoRelationship, "No relationship found of type %s at the given URI: %s/%s",
			target.member.name, readable(path), listSegment)
		return q.refuse(err.at("GET_RELATIONSHIP", path))
	}
	return q.answer(http.StatusOK, listSegment, object{{relationshipSegment, list}})
}
