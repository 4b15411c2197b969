package scope

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/fleet"
)

// follow is what a scope looks at without a reference to it: the object with a name, or the versions of a component; with
// neither, the kind as a whole.
type follow struct {
	kind      fleet.Kind
	namespace string
	name      string
	version   version
}

// followers are the scopes that look at what they do not refer to, so that a change of that leads to them. It is safe for concurrent use.
type followers struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[follow]struct{}
	by map[follow]map[types.NamespacedName]struct{}
}

func newFollowers() *followers {
	return &followers{of: map[types.NamespacedName]map[follow]struct{}{}, by: map[follow]map[types.NamespacedName]struct{}{}}
}

// set sets what a scope looks at, in place of what it looked at before, and reports whether something is new.
func (f *followers) set(scope types.NamespacedName, what map[follow]struct{}) (grew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.of[scope]
	for w := range before {
		for _, key := range []follow{w, {kind: w.kind}} {
			delete(f.by[key], scope)
			if len(f.by[key]) == 0 {
				delete(f.by, key)
			}
		}
	}
	delete(f.of, scope)
	if len(what) > 0 {
		f.of[scope] = what
	}
	for w := range what {
		for _, key := range []follow{w, {kind: w.kind}} {
			if f.by[key] == nil {
				f.by[key] = map[types.NamespacedName]struct{}{}
			}
			f.by[key][scope] = struct{}{}
		}
		_, known := before[w]
		grew = grew || !known
	}
	return grew
}

// addKinds adds the kinds that a scope looks at to those that it refers to.
func (f *followers) addKinds(scope types.NamespacedName, kinds map[fleet.Kind]struct{}) map[fleet.Kind]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.of[scope] {
		kinds[w.kind] = struct{}{}
	}
	return kinds
}

// changed returns the scopes that a change leads to.
func (f *followers) changed(c fleet.Change) []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[types.NamespacedName]struct{}{}
	switch c := c.(type) {
	case fleet.KindChange:
		maps.Copy(found, f.by[follow{kind: c.Kind}])
	case fleet.ObjectChange:
		maps.Copy(found, f.by[follow{kind: c.Kind, namespace: c.Name.Namespace, name: c.Name.Name}])
		if of := versionOf(c.Labels); of != (version{}) {
			maps.Copy(found, f.by[follow{kind: c.Kind, namespace: c.Name.Namespace, version: of}])
		}
	}
	return slices.Collect(maps.Keys(found))
}
