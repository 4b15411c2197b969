package simulator

import "slices"

// kind is how a property is written in JSON and stored.
type kind int

const (
	textKind      kind = iota // JSON string
	booleanKind               // JSON true or false
	integerKind               // JSON number
	textListKind              // JSON array of strings, kept as a set
	versionKind               // the resource-version, set by the server
	containerKind             // child nodes: {"tenants":{"tenant":[...]}}
	relationsKind             // the relationship-list
)

// property is one field of a node type, in the order in which A&AI writes them.
type property struct {
	name     string
	kind     kind
	key      bool   // part of the node's key, hence of its URI
	required bool   // PUT fails without it
	fallback bool   // a boolean that is false when it was never written
	internal bool   // never accepted from outside
	requires string // PUT fails when this is set and the named one is not
}

// nodeType is one kind of object in the inventory.
type nodeType struct {
	name         string
	container    string // plural path segment and JSON field that holds nodes of this type
	namespace    string // first path segment of a top-level type, empty for children
	parent       string // type that contains this one, empty at the top
	since        int    // first schema version that knows the type
	nameProperty string // appears as related-to-property of relationships that point here, empty for none
	properties   []property
}

// property returns the named field, or nil.
func (t *nodeType) property(name string) *property {
	i := slices.IndexFunc(t.properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &t.properties[i]
}

// keys returns the names of the key properties in URI order.
func (t *nodeType) keys() []string {
	var names []string
	for _, p := range t.properties {
		if p.key {
			names = append(names, p.name)
		}
	}
	return names
}

// Schema versions the type table is right for.
const (
	oldestSchema = 22
	newestSchema = 32

	firstK8sResource = 24
)

// typeNamed returns the type with this name as schema version v knows it, or nil.
func typeNamed(name string, v int) *nodeType {
	return findType(v, func(t *nodeType) bool { return t.name == name })
}

// typeContained returns the type whose nodes the named container holds, or nil.
func typeContained(container string, v int) *nodeType {
	return findType(v, func(t *nodeType) bool { return t.container == container })
}

func findType(v int, match func(*nodeType) bool) *nodeType {
	for _, t := range nodeTypes {
		if t.since <= v && match(t) {
			return t
		}
	}
	return nil
}

// isNamespace reports whether a path may start with this segment.
func isNamespace(segment string) bool {
	return slices.ContainsFunc(nodeTypes, func(t *nodeType) bool { return t.namespace == segment && segment != "" })
}

// multiplicity limits how many edges of one rule a node may have.
type multiplicity int

const (
	manyToMany multiplicity = iota
	manyToOne               // each from-node has at most one edge
	oneToMany               // each to-node has at most one edge
)

// edgeRule allows one kind of edge. A&AI writes deletion semantics as IN and OUT; here they name the node concerned.
type edgeRule struct {
	from, to     string
	label        string
	multiplicity multiplicity
	tree         bool // containment: made by the URI, never by a relationship
	blocksTo     bool // the to-node cannot be deleted while the edge exists (prevent-delete IN)
	deletesFrom  bool // deleting the to-node deletes the from-node (delete-other-v IN)
	deletesTo    bool // deleting the from-node deletes the to-node (delete-other-v OUT)
}

// ruleBetween finds the rule for an unordered pair of types. An empty label matches any. No pair has two rules.
func ruleBetween(a, b, label string) *edgeRule {
	for _, r := range edgeRules {
		pair := (r.from == a && r.to == b) || (r.from == b && r.to == a)
		if pair && (label == "" || label == r.label) {
			return r
		}
	}
	return nil
}
