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
	nodes    map[string]*node            // by canonical URI
	members  map[string]map[string]*node // container URI -> its nodes by URI
	edges    map[string]map[edge]uint64  // node URI -> its edges with their order of creation
	sequence uint64                      // last id given out
	latest   int64                       // last resource-version given out
}

func newGraph() *graph {
	return &graph{
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

// tx is one transaction: changes show at once, and rollback takes them back. All nodes it touches get one and the same
// resource-version, as in A&AI.
type tx struct {
	*graph
	schema  int
	version string
	undo    []func()
}

// begin starts a transaction at a time. resource-versions are epoch milliseconds; to be told apart they also increase
// from one transaction to the next, even when the clock stands still or runs back.
func (g *graph) begin(schema int, now time.Time) *tx {
	g.latest = max(g.latest+1, now.UnixMilli())
	return &tx{graph: g, schema: schema, version: strconv.FormatInt(g.latest, 10)}
}

func (t *tx) rollback() {
	for _, step := range slices.Backward(t.undo) {
		step()
	}
}

// save stores a node under its URI with the transaction's resource-version.
func (t *tx) save(n *node) {
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
func (t *tx) touch(uri string) {
	n := *t.nodes[uri]
	t.save(&n)
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
