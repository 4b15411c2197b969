package members

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// history is how many changes a collection remembers. A watch that begins before them has to list again.
const history = 2048

// document is an object in JSON, in two parts: what differs from one cluster to another, and what many objects share.
type document struct {
	name       types.NamespacedName
	head, tail []byte
}

// change is something that has happened to an object. Its version is the object's resource version from then on.
type change struct {
	kind    string
	version uint64
	document
}

// collection holds the objects of one kind, and the last changes of them. Versions count the changes, from 1.
type collection struct {
	// apiVersion and kind are those of its objects.
	apiVersion, kind string

	mu      sync.Mutex // guards the rest
	objects map[types.NamespacedName]document
	version uint64
	// changes are the last ones, the oldest first. The last one has the version of the collection.
	changes []change
	// changed is closed with the next change.
	changed chan struct{}
}

func newCollection(apiVersion, kind string) *collection {
	return &collection{apiVersion: apiVersion, kind: kind, objects: map[types.NamespacedName]document{}, version: 1, changed: make(chan struct{})}
}

// put makes an object be as a function says that gets its new resource version.
func (c *collection) put(name types.NamespacedName, render func(version string) (head, tail []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := "MODIFIED"
	if _, ok := c.objects[name]; !ok {
		kind = "ADDED"
	}
	head, tail := render(strconv.FormatUint(c.version+1, 10))
	d := document{name: name, head: head, tail: tail}
	c.objects[name] = d
	c.happened(kind, d)
}

// remove removes an object, if it is there.
func (c *collection) remove(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.objects[name]; ok {
		delete(c.objects, name)
		c.happened("DELETED", d)
	}
}

func (c *collection) happened(kind string, d document) {
	c.version++
	if len(c.changes) >= 2*history {
		c.changes = slices.Clone(c.changes[len(c.changes)-history:])
	}
	c.changes = append(c.changes, change{kind: kind, version: c.version, document: d})
	close(c.changed)
	c.changed = make(chan struct{})
}

// snapshot returns the objects that a filter lets pass, sorted by name, and the version as of which they are so.
func (c *collection) snapshot(passes func(types.NamespacedName) bool) (documents []document, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, d := range c.objects {
		if passes(name) {
			documents = append(documents, d)
		}
	}
	slices.SortFunc(documents, func(a, b document) int { return compareNames(a.name, b.name) })
	return documents, c.version
}

// since returns what has happened after a version, the version that this leads to, and what is closed when there is more;
// false when that is too long ago, or has not been yet.
func (c *collection) since(version uint64) (changes []change, now uint64, more <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	behind := c.version - version
	if version > c.version || behind > uint64(len(c.changes)) {
		return nil, 0, nil, false
	}
	return slices.Clone(c.changes[uint64(len(c.changes))-behind:]), c.version, c.changed, true
}
