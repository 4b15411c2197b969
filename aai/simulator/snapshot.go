package simulator

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// view is what is to be seen of nodes.
type view struct {
	base          string // of links, like "/aai"
	schema        int
	depth         int  // levels of children
	nodesOnly     bool // without relationship-list
	skipRelatedTo bool // without related-to-property
}

// allDepths is deeper than the schema.
const allDepths = 1 << 16

// link gives the path of a place as the view's clients have to ask for it.
func (v view) link(p *place) string { return v.base + "/v" + strconv.Itoa(v.schema) + p.uri() }

// snapshot is a node as it was at one moment, with the children and the neighbours that a view shows. Nodes are never
// changed in place, so it costs a pointer each and can be rendered later.
type snapshot struct {
	node     *node
	children map[string][]*snapshot // by container
	links    []neighbour            // in no order, because a snapshot is more often taken than rendered
}

// neighbour is the other end of an edge.
type neighbour struct {
	label string
	node  *node
	order uint64 // of creation of the edge
}

// freeze takes a snapshot of a node.
func (g *graph) freeze(n *node, v view) *snapshot {
	s := &snapshot{node: n, children: map[string][]*snapshot{}}
	if !v.nodesOnly {
		s.links = g.neighbours(n, v.schema)
	}
	if v.depth == 0 {
		return s
	}
	v.depth--
	for _, p := range n.place.typ.properties {
		child := typeContained(p.name, v.schema)
		if p.kind != containerKind || child == nil {
			continue
		}
		for _, member := range g.list(containerURI(child, n.place)) {
			s.children[p.name] = append(s.children[p.name], g.freeze(member, v))
		}
	}
	return s
}

// neighbours returns the other ends of a node's edges that a schema version knows.
func (g *graph) neighbours(n *node, schema int) []neighbour {
	uri := n.place.uri()
	list := make([]neighbour, 0, len(g.edges[uri]))
	for e, order := range g.edges[uri] {
		if other := g.nodes[e.other(uri)]; other.place.typ.since <= schema {
			list = append(list, neighbour{e.rule.label, other, order})
		}
	}
	return list
}

// entity takes a snapshot of a node inside the nodes that contain it, of which it shows the properties only.
func (g *graph) entity(n *node, v view) *snapshot {
	s := g.freeze(n, v)
	for p := n.place; p.parent != nil; p = p.parent {
		s = &snapshot{node: g.nodes[p.parent.uri()], children: map[string][]*snapshot{p.typ.container: {s}}}
	}
	return s
}

// weight counts what a snapshot holds on to.
func (s *snapshot) weight() int {
	sum := 1 + len(s.links)
	for _, members := range s.children {
		for _, member := range members {
			sum += member.weight()
		}
	}
	return sum
}

// document renders a node for an answer.
func (g *graph) document(n *node, v view) object { return g.freeze(n, v).document(v) }

// documents renders nodes for an answer.
func (g *graph) documents(nodes []*node, v view) []object {
	list := make([]object, len(nodes))
	for i, n := range nodes {
		list[i] = g.document(n, v)
	}
	return list
}

// document renders a snapshot in schema order. What is not set is left out.
func (s *snapshot) document(v view) object {
	var doc object
	for _, p := range s.node.place.typ.properties {
		if value := s.value(p, v); value != nil {
			doc = append(doc, field{p.name, value})
		}
	}
	return doc
}

func (s *snapshot) value(p property, v view) any {
	switch p.kind {
	case versionKind:
		return s.node.version
	case textListKind:
		if set, ok := s.node.props[p.name].([]string); ok {
			return shuffled(set, s.node.place.uri())
		}
	case containerKind:
		if members := s.children[p.name]; len(members) > 0 {
			return membersObject(members, v)
		}
	case relationsKind:
		if len(s.links) > 0 {
			return object{{relationshipSegment, s.relationships(v)}}
		}
	case textKind, booleanKind, integerKind:
		return s.node.props[p.name]
	}
	return nil
}

func membersObject(members []*snapshot, v view) object {
	list := make([]object, len(members))
	for i, member := range members {
		list[i] = member.document(v)
	}
	return object{{members[0].node.place.typ.name, list}}
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

// relationships renders the edges of a node in order of creation.
func (s *snapshot) relationships(v view) []object {
	links := slices.SortedFunc(slices.Values(s.links), func(a, b neighbour) int { return cmp.Compare(a.order, b.order) })
	list := make([]object, len(links))
	for i, other := range links {
		list[i] = other.relationship(v)
	}
	return list
}

func (o neighbour) relationship(v view) object {
	t := o.node.place.typ
	doc := object{
		{"related-to", t.name},
		{"relationship-label", o.label},
		{"related-link", v.link(o.node.place)},
		{"relationship-data", o.node.place.pathKeys()},
	}
	if name, ok := o.node.props[t.nameProperty].(string); ok && !v.skipRelatedTo {
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
