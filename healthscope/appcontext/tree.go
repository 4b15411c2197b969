package appcontext

import (
	"cmp"
	"slices"
	"strings"
)

// node is a key and what is below it. A node that others can see never changes: a change makes new nodes on the way to
// the key and shares the rest, so that a snapshot costs what has changed and not what there is.
type node struct {
	// value is what is stored at the key itself, if has.
	value []byte
	has   bool
	// revision is that of etcd at which the value was last written.
	revision int64
	// children are what is one level below, in the order of their keys in etcd.
	children []child
}

type child struct {
	name string
	node *node
}

// compareNames compares names as etcd orders their keys, which have a slash behind the name: "a-b" comes before "a".
func compareNames(a, b string) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 || len(a) == len(b) {
		return c
	}
	if len(a) < len(b) {
		return cmp.Or(cmp.Compare('/', b[n]), -1)
	}
	return cmp.Or(cmp.Compare(a[n], '/'), 1)
}

func (n *node) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c child, name string) int { return compareNames(c.name, name) })
}

// at returns what is at a path below the node, nil if nothing.
func (n *node) at(path ...string) *node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		i, ok := n.find(name)
		if !ok {
			return nil
		}
		n = n.children[i].node
	}
	return n
}

// stored returns the value at a path below the node.
func (n *node) stored(path ...string) ([]byte, bool) {
	found := n.at(path...)
	if found == nil || !found.has {
		return nil, false
	}
	return found.value, true
}

// insert stores a value at a path below a node that nobody else sees yet.
func (n *node) insert(path []string, value []byte, revision int64) {
	for _, name := range path {
		i, ok := n.find(name)
		if !ok {
			n.children = slices.Insert(n.children, i, child{name, &node{}})
		}
		n = n.children[i].node
	}
	n.value, n.has, n.revision = value, true, revision
}

// with returns the node with a value at a path.
func (n *node) with(path []string, value []byte, revision int64) *node {
	changed := &node{}
	if n != nil {
		*changed = *n
	}
	if len(path) == 0 {
		changed.value, changed.has, changed.revision = value, true, revision
		return changed
	}
	i, ok := changed.find(path[0])
	if !ok {
		var none *node
		changed.children = slices.Insert(slices.Clip(changed.children), i, child{path[0], none.with(path[1:], value, revision)})
		return changed
	}
	changed.children = slices.Clone(changed.children)
	changed.children[i].node = changed.children[i].node.with(path[1:], value, revision)
	return changed
}

// without returns the node without the value at a path; nil when nothing is left.
func (n *node) without(path []string) *node {
	if n == nil {
		return nil
	}
	changed := *n
	if len(path) == 0 {
		changed.value, changed.has, changed.revision = nil, false, 0
	} else if i, ok := n.find(path[0]); ok {
		changed.children = slices.Clone(n.children)
		if below := n.children[i].node.without(path[1:]); below != nil {
			changed.children[i].node = below
		} else {
			changed.children = slices.Delete(changed.children, i, i+1)
		}
	}
	if !changed.has && len(changed.children) == 0 {
		return nil
	}
	return &changed
}

// walk calls visit for every value in the order of the keys, which begin with key, until visit returns false.
func (n *node) walk(key string, visit func(key string, n *node) bool) bool {
	if n == nil {
		return true
	}
	if n.has && !visit(key, n) {
		return false
	}
	for _, c := range n.children {
		if !c.node.walk(key+c.name+"/", visit) {
			return false
		}
	}
	return true
}
