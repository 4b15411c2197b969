package fleet

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/observe"
)

// bundleStore stores the bundles that are read over one connection, by the namespace that is read; the empty one stands for all.
type bundleStore map[string]*observe.Store[*cachedBundle]

// get returns a bundle; nil when there is none.
func (s bundleStore) get(name types.NamespacedName) *cachedBundle {
	for _, namespace := range []string{"", name.Namespace} {
		if store := s[namespace]; store != nil {
			b, _ := store.Get(name)
			return b
		}
	}
	return nil
}

// names returns the names of all bundles.
func (s bundleStore) names() []types.NamespacedName {
	var names []types.NamespacedName
	for _, store := range s {
		for name := range store.All() {
			names = append(names, name)
		}
	}
	return names
}

// hasForeign reports whether there are bundles that a monitor other than ours has filled.
func (s bundleStore) hasForeign() bool {
	for _, store := range s {
		for _, b := range store.All() {
			if !b.contents.Own {
				return true
			}
		}
	}
	return false
}
