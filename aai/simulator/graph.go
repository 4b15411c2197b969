package simulator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// node is one vertex. Nodes are never changed in place: a transaction stores a copy, so an old pointer stays what it was.
type node struct {
	id      uint64 // vertex id; also the order of creation, in which lists are answered
	place   *place
	props   map[string]any
	version string // resource-version
}

// edge joins two nodes by a rule, in the rule's direction. Containment is no edge here, it follows from the URI.
type edge struct {
	from, to string // canonical URIs
	rule     *edgeRule
}

// graph is the whole inventory. The Simulator guards it.
type graph struct {
	base     string                      // path before /vN in links, like "/aai"
	nodes    map[string]*node            // by canonical URI
	members  map[string]map[string]*node // container URI -> its nodes by URI
	edges    map[string]map[edge]uint64  // node URI -> its edges with their order of creation
	sequence uint64                      // last id given out
	latest   int64                       // last resource-version given out
}

func newGraph(base string) *graph {
	return &graph{
		base:    base,
		nodes:   map[string]*node{},
		members: map[string]map[string]*node{},
		edges:   map[string]map[edge]uint64{},
	}
}

// list returns the nodes of a container in order of creation.
func (g *graph) list(container string) []*node {
	return slices.SortedFunc(maps.Values(g.members[container]), func(a, b *node) int { return cmp.Compare(a.id, b.id) })
}

// all returns every node in order of creation, hence parents before children.
func (g *graph) all() []*node {
	return slices.SortedFunc(maps.Values(g.nodes), func(a, b *node) int { return cmp.Compare(a.id, b.id) })
}

// edgesOf returns the edges of a node in order of creation.
func (g *graph) edgesOf(uri string) []edge {
	set := g.edges[uri]
	return slices.SortedFunc(maps.Keys(set), func(a, b edge) int { return cmp.Compare(set[a], set[b]) })
}

// visibleEdges returns the edges of a node whose other end a schema version knows, in order of creation. To requests of
// that version the others do not exist.
func (g *graph) visibleEdges(uri string, schema int) []edge {
	return slices.DeleteFunc(g.edgesOf(uri), func(e edge) bool {
		return typeNamed(g.nodes[e.other(uri)].place.typ.name, schema) == nil
	})
}

// has reports whether an edge exists.
func (g *graph) has(e edge) bool {
	_, exists := g.edges[e.from][e]
	return exists
}

// other returns the end of an edge that is not uri.
func (e edge) other(uri string) string {
	if e.from == uri {
		return e.to
	}
	return e.from
}

// clone copies the inventory; nodes are shared, as they never change.
func (g *graph) clone() *graph {
	c := *g
	c.nodes, c.members, c.edges = maps.Clone(g.nodes), maps.Clone(g.members), maps.Clone(g.edges)
	for container, members := range c.members {
		c.members[container] = maps.Clone(members)
	}
	for uri, edges := range c.edges {
		c.edges[uri] = maps.Clone(edges)
	}
	return &c
}

// tx is one transaction: changes show at once, and rollback takes them back. All nodes it touches get one and the same
// resource-version, as in A&AI.
type tx struct {
	*graph
	schema   int
	version  string
	shown    view     // how events show nodes
	implied  []string // types whose PUT may delete children by leaving them out, "*" for all
	override string   // passes for any resource-version in a DELETE
	undo     []func()
	changes  []*change          // in the order in which they were made
	changed  map[string]*change // the same by canonical URI
}

// change is what a transaction did to a node.
type change struct {
	place    *place
	before   *node     // nil when it was not there
	own      bool      // it was written itself, not only as the other end of an edge
	farewell *snapshot // of a removed node, as it was last
}

// begin starts a transaction at a time. resource-versions are epoch milliseconds; to be told apart they also increase
// from one transaction to the next, even when the clock runs back, unless exact asks for the milliseconds as they are.
func (g *graph) begin(schema int, now time.Time, exact bool) *tx {
	millis := now.UnixMilli()
	if !exact {
		millis = max(g.latest+1, millis)
	}
	g.latest = max(g.latest, millis)
	return &tx{graph: g, schema: schema, version: strconv.FormatInt(millis, 10), changed: map[string]*change{}}
}

func (t *tx) rollback() {
	for _, step := range slices.Backward(t.undo) {
		step()
	}
}

// note remembers that a node is about to change.
func (t *tx) note(p *place, own bool) *change {
	uri := p.uri()
	c := t.changed[uri]
	if c == nil {
		c = &change{place: p, before: t.nodes[uri]}
		t.changed[uri] = c
		t.changes = append(t.changes, c)
	}
	c.own = c.own || own
	return c
}

// save stores a node under its URI with the transaction's resource-version. It is the node's own change, or only that
// of an edge to it.
func (t *tx) save(n *node, own bool) {
	t.note(n.place, own)
	n.version = t.version
	if n.id == 0 {
		t.sequence++
		n.id = t.sequence
	}
	uri := n.place.uri()
	old := t.nodes[uri]
	t.set(uri, n.place, n)
	t.undo = append(t.undo, func() { t.set(uri, n.place, old) })
}

// remove drops a node; its edges must be gone.
func (t *tx) remove(n *node) {
	uri := n.place.uri()
	t.set(uri, n.place, nil)
	t.undo = append(t.undo, func() { t.set(uri, n.place, n) })
}

// set is the one place where nodes and members change together; nil removes.
func (g *graph) set(uri string, p *place, n *node) {
	container := containerURI(p.typ, p.parent)
	if n == nil {
		delete(g.nodes, uri)
		delete(g.members[container], uri)
		if len(g.members[container]) == 0 {
			delete(g.members, container)
		}
		return
	}
	g.nodes[uri] = n
	if g.members[container] == nil {
		g.members[container] = map[string]*node{}
	}
	g.members[container][uri] = n
}

// touch gives a node a new resource-version.
func (t *tx) touch(uri string, own bool) {
	n := *t.nodes[uri]
	t.save(&n, own)
}

// stamp gives a node the resource-version that a fixture asks for.
func (t *tx) stamp(uri, version string) {
	n := *t.nodes[uri]
	n.version = version
	t.set(uri, n.place, &n)
}

// join adds an edge that does not exist yet.
func (t *tx) join(e edge) {
	t.sequence++
	t.setEdge(e, t.sequence)
	t.undo = append(t.undo, func() { t.dropEdge(e) })
}

// part removes an edge.
func (t *tx) part(e edge) {
	order := t.edges[e.from][e]
	t.dropEdge(e)
	t.undo = append(t.undo, func() { t.setEdge(e, order) })
}

func (g *graph) setEdge(e edge, order uint64) {
	for _, end := range []string{e.from, e.to} {
		if g.edges[end] == nil {
			g.edges[end] = map[edge]uint64{}
		}
		g.edges[end][e] = order
	}
}

func (g *graph) dropEdge(e edge) {
	for _, end := range []string{e.from, e.to} {
		delete(g.edges[end], e)
		if len(g.edges[end]) == 0 {
			delete(g.edges, end)
		}
	}
}
