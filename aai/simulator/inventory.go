package simulator

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// node is one node of the inventory. It is immutable: a write stores a new node under the same URI, so that a pointer keeps
// the old state.
type node struct {
	id      uint64 // vertex-id, and the order of creation, in which lists are answered
	place   *place
	props   map[string]any // string, bool, int64 or []string
	version string         // resource-version
	edges   []edge         // in order of creation
}

// edge is a relationship as one of its ends stores it. The other end stores the opposite one. Containment is no edge: it follows
// from the URI.
type edge struct {
	rule  *edgeRule
	other string // URI of the other end
}

// inventory is what A&AI stores. The Simulator guards it.
type inventory struct {
	nodes    map[string]*node // by URI
	sequence uint64           // last id assigned
	latest   int64            // last resource-version assigned
}

// list returns the nodes of a container in order of creation.
func (v *inventory) list(container string) []*node {
	return v.sorted(func(n *node) bool { return n.place.container == container })
}

// sorted returns the nodes that match in order of creation, so parents come before children.
func (v *inventory) sorted(match func(*node) bool) []*node {
	var list []*node
	for _, n := range v.nodes {
		if match(n) {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	return list
}

// lookup returns the nodes of a target: all members of a container, else at most one.
func (v *inventory) lookup(tgt target) []*node {
	if tgt.scope == containerScope {
		return v.list(containerURI(tgt.typ, tgt.node))
	}
	if n := v.nodes[tgt.node.uri]; n != nil {
		return []*node{n}
	}
	return nil
}

// tx is one transaction. Its changes are visible immediately, and rollback undoes them. All nodes that it writes get the same
// resource-version, as in A&AI.
type tx struct {
	*inventory

	schema  int
	version string
	before  map[string]*node // nodes before their first change, by URI; nil for a new node
}

// begin starts a transaction. Its resource-version is the time in milliseconds since 1970, but always more than the one before:
// unlike in A&AI no two writes have the same one.
func (v *inventory) begin(schema int, now time.Time) *tx {
	v.latest = max(v.latest+1, now.UnixMilli())
	return &tx{inventory: v, schema: schema, version: strconv.FormatInt(v.latest, 10), before: map[string]*node{}}
}

func (t *tx) rollback() {
	for uri, n := range t.before {
		t.set(uri, n)
	}
}

// save stores a node with the transaction's resource-version.
func (t *tx) save(n node) {
	n.version = t.version
	if n.id == 0 {
		t.sequence++
		n.id = t.sequence
	}
	t.replace(n.place.uri, &n)
}

// replace stores a node with its own resource-version, or removes the node at the URI if n is nil.
func (t *tx) replace(uri string, n *node) {
	if _, known := t.before[uri]; !known {
		t.before[uri] = t.nodes[uri]
	}
	t.set(uri, n)
}

func (v *inventory) set(uri string, n *node) {
	if n == nil {
		delete(v.nodes, uri)
		return
	}
	v.nodes[uri] = n
}

// touch gives a node a new resource-version.
func (t *tx) touch(uri string) { t.save(*t.nodes[uri]) }

// has reports whether a node has an edge.
func (t *tx) has(uri string, e edge) bool { return slices.Contains(t.nodes[uri].edges, e) }

// addEdge adds an edge unless it exists. Both ends get a new resource-version.
func (t *tx) addEdge(uri string, e edge) *apiError {
	if t.has(uri, e) {
		return nil
	}
	opposite := edge{e.rule, uri}
	for end, added := range map[string]edge{uri: e, e.other: opposite} {
		n := *t.nodes[end]
		taken := slices.ContainsFunc(n.edges, func(e edge) bool { return e.rule == added.rule })
		if taken && n.place.typ.name == e.rule.single {
			return newAPIError(errMultiplicity, "multiplicity rule violated: only one edge can exist with label: %s between %s and %s",
				e.rule.label, e.rule.from, e.rule.to)
		}
		n.edges = append(slices.Clone(n.edges), added)
		t.save(n)
	}
	return nil
}

// removeEdge removes an edge. Both ends get a new resource-version.
func (t *tx) removeEdge(uri string, e edge) {
	for end, gone := range map[string]edge{uri: e, e.other: {e.rule, uri}} {
		n := *t.nodes[end]
		n.edges = slices.DeleteFunc(slices.Clone(n.edges), func(e edge) bool { return e == gone })
		t.save(n)
	}
}
