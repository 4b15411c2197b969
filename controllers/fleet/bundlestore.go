package fleet

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// bundleStore stores the bundles that are read over one connection. It is safe for concurrent use.
type bundleStore struct {
	// transform makes a cachedBundle of a ResourceBundleState, and returns a cachedBundle as it is.
	transform toolscache.TransformFunc
	// changed is called for every bundle that comes, changes or goes. It does not block.
	changed func(types.NamespacedName)

	mu sync.Mutex
	// bundles are the bundles by the namespace that is read; the empty one stands for all.
	bundles map[string]map[types.NamespacedName]*cachedBundle
}

func newBundleStore(hold toolscache.TransformFunc, changed func(types.NamespacedName)) *bundleStore {
	return &bundleStore{transform: hold, changed: changed, bundles: map[string]map[types.NamespacedName]*cachedBundle{}}
}

// get returns a bundle; nil when there is none.
func (s *bundleStore) get(name types.NamespacedName) *cachedBundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.bundles[""][name]; h != nil {
		return h
	}
	return s.bundles[name.Namespace][name]
}

// all returns the names of all bundles.
func (s *bundleStore) all() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []types.NamespacedName
	for _, bundles := range s.bundles {
		for name := range bundles {
			names = append(names, name)
		}
	}
	return names
}

// hasForeign reports whether there are bundles that a monitor other than ours has filled.
func (s *bundleStore) hasForeign() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, bundles := range s.bundles {
		for _, h := range bundles {
			if !h.contents.Own {
				return true
			}
		}
	}
	return false
}

// bundlesIn is the part of a bundleStore that is read from one namespace. It implements cache.TransformingStore.
type bundlesIn struct {
	*bundleStore

	namespace string
}

// Transformer implements cache.TransformingStore.
func (s bundlesIn) Transformer() toolscache.TransformFunc { return s.transform }

// Add implements cache.ReflectorStore.
func (s bundlesIn) Add(object any) error {
	h, err := s.cached(object)
	if err != nil {
		return err
	}
	name := nameOf(h)
	s.mu.Lock()
	if s.bundles[s.namespace] == nil {
		s.bundles[s.namespace] = map[types.NamespacedName]*cachedBundle{}
	}
	s.bundles[s.namespace][name] = h
	s.mu.Unlock()
	s.changed(name)
	return nil
}

// cached returns an object as a cachedBundle.
func (s bundlesIn) cached(object any) (*cachedBundle, error) {
	object, err := s.transform(object)
	if err != nil {
		return nil, err
	}
	return object.(*cachedBundle), nil //nolint:forcetypeassert // That is what transform returns.
}

// Update implements cache.ReflectorStore.
func (s bundlesIn) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s bundlesIn) Delete(object any) error {
	named, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: named.GetNamespace(), Name: named.GetName()}
	s.mu.Lock()
	delete(s.bundles[s.namespace], name)
	s.mu.Unlock()
	s.changed(name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s bundlesIn) Replace(all []any, _ string) error {
	bundles := make(map[types.NamespacedName]*cachedBundle, len(all))
	for _, object := range all {
		h, err := s.cached(object)
		if err != nil {
			return err
		}
		bundles[nameOf(h)] = h
	}
	s.mu.Lock()
	before := s.bundles[s.namespace]
	s.bundles[s.namespace] = bundles
	s.mu.Unlock()
	for name := range bundles {
		s.changed(name)
	}
	for name := range before {
		if bundles[name] == nil {
			s.changed(name)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s bundlesIn) Resync() error { return nil }

func nameOf(h *cachedBundle) types.NamespacedName {
	return types.NamespacedName{Namespace: h.Namespace, Name: h.Name}
}

var _ toolscache.TransformingStore = bundlesIn{}
