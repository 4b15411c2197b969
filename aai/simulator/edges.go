package simulator

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// relate makes the edges of a node those of a relationship-list: others go, missing ones come, and the other end of
// each edge that comes or goes gets a new resource-version. It reports whether any did.
func (t *tx) relate(p *place, links []relationship) (changed bool, _ *apiError) {
	uri := p.uri()
	wanted := make([]edge, len(links))
	for i, link := range links {
		e, err := t.listed(p, link)
		if err != nil {
			return false, err
		}
		wanted[i] = e
	}
	for _, e := range t.visibleEdges(uri, t.schema) {
		if !slices.Contains(wanted, e) {
			t.part(e)
			t.touch(e.other(uri), false)
			changed = true
		}
	}
	for _, e := range wanted {
		if t.has(e) {
			continue
		}
		if err := t.add(e); err != nil {
			return false, err
		}
		t.touch(e.other(uri), false)
		changed = true
	}
	return changed, nil
}

// listed returns the edge an entry of a relationship-list stands for.
func (t *tx) listed(p *place, link relationship) (edge, *apiError) {
	target, err := t.end(link, "")
	if err != nil {
		return edge{}, err
	}
	rule := ruleBetween(p.typ.name, target.typ.name, link.label)
	switch {
	case rule == nil:
		return edge{}, fail(codeBadParameter, "No EdgeRule found for passed nodeTypes: %s, %s%s.",
			p.typ.name, target.typ.name, labelled(link.label))
	case rule.tree:
		return edge{}, fail(codeContainmentEdge, "")
	}
	return t.between(p, target, rule), nil
}

func labelled(label string) string {
	if label == "" {
		return ""
	}
	return " with label " + label
}

// end finds the node a relationship points to. Messages quote the link, or the canonical path when link is empty.
func (t *tx) end(r relationship, link string) (*place, *apiError) {
	target, err := r.target(t.base, t.schema)
	if err != nil {
		return nil, err
	}
	uri := target.uri()
	if t.nodes[uri] == nil {
		if link == "" {
			link = uri
		}
		return nil, fail(codeTargetNotFound, "Node of type %s. Could not find object at: %s", target.typ.name, link).
			with(target.typ.name, link)
	}
	return target, nil
}

// between returns the edge of a rule between two nodes, in the rule's direction. Between nodes of one type the
// direction is that of an edge that exists, else from p to target.
func (t *tx) between(p, target *place, rule *edgeRule) edge {
	e := edge{from: p.uri(), to: target.uri(), rule: rule}
	flipped := edge{from: e.to, to: e.from, rule: rule}
	if rule.from != p.typ.name {
		return flipped
	}
	if t.has(flipped) {
		return flipped
	}
	return e
}

// add creates an edge unless the multiplicity of its rule forbids it.
func (t *tx) add(e edge) *apiError {
	if t.has(e) {
		return nil
	}
	single := map[multiplicity]string{manyToOne: e.from, oneToMany: e.to}[e.rule.multiplicity]
	for other := range t.edges[single] {
		if other.rule != e.rule {
			continue
		}
		return fail(codeMultiplicity, "multiplicity rule violated: only one edge can exist with label: %s between %s and %s",
			e.rule.label, e.rule.from, e.rule.to)
	}
	t.join(e)
	return nil
}

// putEdge is PUT on the relationship sub-resource. Both ends get a new resource-version even when the edge exists.
func (t *tx) putEdge(op *operation) (effect, *apiError) {
	n, err := t.find(op)
	if err != nil {
		return effect{}, err
	}
	target, err := t.end(op.link, op.link.link)
	if err != nil {
		return effect{}, err
	}
	rule := ruleBetween(n.place.typ.name, target.typ.name, op.link.label)
	if rule == nil || rule.tree {
		return effect{}, noRule(n.place, target, op.link.label)
	}
	e := t.between(n.place, target, rule)
	if err := t.add(e); err != nil {
		return effect{}, err
	}
	t.touch(n.place.uri(), true)
	t.touch(target.uri(), false)
	return effect{status: http.StatusOK}, nil
}

func noRule(a, b *place, label string) *apiError {
	return fail(codeNoEdgeRule, "EdgeRuleNotFoundException: No rule found for node type: %s, node type: %s%s, type: COUSIN",
		a.typ.name, b.typ.name, labelled(label))
}

// deleteEdge is DELETE on the relationship sub-resource: no error when there is no such edge or target.
func (t *tx) deleteEdge(op *operation) (effect, *apiError) {
	n, err := t.find(op)
	if err != nil {
		return effect{}, err
	}
	target, err := op.link.target(t.base, t.schema)
	if err != nil {
		return effect{}, err
	}
	rule := ruleBetween(n.place.typ.name, target.typ.name, op.link.label)
	if rule == nil {
		return effect{}, noRule(n.place, target, op.link.label)
	}
	t.touch(n.place.uri(), true)
	if e := t.between(n.place, target, rule); t.has(e) {
		t.part(e)
		t.touch(target.uri(), false)
	}
	return effect{status: http.StatusNoContent}, nil
}

// delete removes a node and what its rules take along. The other end of each edge that goes gets a new
// resource-version; the node that contains it does not.
func (t *tx) delete(op *operation) (effect, *apiError) {
	n, err := t.find(op)
	if err != nil {
		return effect{}, err
	}
	switch {
	case op.version == "":
		return effect{}, fail(codeVersionRequired, "resource-version not passed for delete of %s", n.place.typ.name)
	case op.version != n.version && op.version != t.override:
		return effect{}, fail(codeVersionMismatch, "resource-version MISMATCH for delete of %s", n.place.typ.name)
	}
	if err := t.drop(n); err != nil {
		return effect{}, err
	}
	return effect{status: http.StatusNoContent}, nil
}

// drop removes a node and what goes with it, unless a rule prevents that.
func (t *tx) drop(n *node) *apiError {
	if types := t.blockers(n); len(types) > 0 {
		return fail(codeDeleteBlocked, "Object is being reference by additional objects preventing it from being "+
			"deleted. Please clean up references from the following types [%s]", strings.Join(types, ", "))
	}
	doomed := t.doomed(n)
	uris := slices.SortedFunc(maps.Keys(doomed), func(a, b string) int { return cmp.Compare(doomed[a].id, doomed[b].id) })
	for _, uri := range uris {
		t.note(doomed[uri].place, true).farewell = t.entity(doomed[uri], t.shown)
	}
	for _, uri := range uris {
		t.detach(uri, doomed)
	}
	for _, uri := range uris {
		t.remove(doomed[uri])
	}
	return nil
}

// tie is a node that a rule relates to another, by containment or by an edge.
type tie struct {
	rule *edgeRule
	node *node
	from bool // the node asked about is the from-end of the rule
}

// ties returns the children and the neighbours of a node.
func (t *tx) ties(n *node) []tie {
	uri := n.place.uri()
	var list []tie
	for _, rule := range edgeRules {
		if child := typeNamed(rule.from, newestSchema); rule.tree && rule.to == n.place.typ.name {
			for _, member := range t.list(containerURI(child, n.place)) {
				list = append(list, tie{rule: rule, node: member})
			}
		}
	}
	for _, e := range t.edgesOf(uri) {
		list = append(list, tie{rule: e.rule, node: t.nodes[e.other(uri)], from: e.from == uri})
	}
	return list
}

// blockers returns the types of the nodes that prevent a deletion, sorted.
func (t *tx) blockers(n *node) []string {
	types := map[string]bool{}
	for _, tie := range t.ties(n) {
		if tie.rule.blocksTo && !tie.from {
			types[tie.node.place.typ.name] = true
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// doomed returns the node and all that go with it, by URI.
func (t *tx) doomed(n *node) map[string]*node {
	found := map[string]*node{n.place.uri(): n}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		for _, tie := range t.ties(queue[0]) {
			follows := (tie.from && tie.rule.deletesTo) || (!tie.from && tie.rule.deletesFrom)
			if uri := tie.node.place.uri(); follows && found[uri] == nil {
				found[uri] = tie.node
				queue = append(queue, tie.node)
			}
		}
	}
	return found
}

// detach removes the edges of a node that is about to go.
func (t *tx) detach(uri string, doomed map[string]*node) {
	for _, e := range t.edgesOf(uri) {
		t.part(e)
		if other := e.other(uri); doomed[other] == nil {
			t.touch(other, false)
		}
	}
}
