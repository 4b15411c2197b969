package observe

import (
	"maps"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Kept is what is kept of an object as it arrives: its name, and a value in place of all else.
type Kept[V any] struct {
	metav1.PartialObjectMetadata

	Value V
}

// Store holds a value for each object of a place. It implements cache.TransformingStore, so that the objects themselves are
// dropped as they arrive. It is safe for concurrent use.
type Store[V any] struct {
	keep    func(object any) V
	same    func(a, b V) bool
	changed func(types.NamespacedName)

	mu     sync.Mutex
	values map[types.NamespacedName]V
	// read is true once all there is has been stored.
	read bool
}

// NewStore returns an empty store. keep makes the value of an object, and cannot fail: an object that it cannot read gets a value that says
// so. changed is called, once all there is has been read, for each object that comes, goes or whose value is not the same as before; it must not block.
func NewStore[V any](keep func(object any) V, same func(a, b V) bool, changed func(types.NamespacedName)) *Store[V] {
	return &Store[V]{keep: keep, same: same, changed: changed, values: map[types.NamespacedName]V{}}
}

// Get returns the value of an object; false when there is none.
func (s *Store[V]) Get(name types.NamespacedName) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name]
	return value, ok
}

// All returns the values of all objects.
func (s *Store[V]) All() map[types.NamespacedName]V {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// IsRead reports whether all there is has been stored once.
func (s *Store[V]) IsRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// Transformer implements cache.TransformingStore.
func (s *Store[V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.kept(object) }
}

// kept returns what is kept of an object. What has been kept stays as it is: a reflector may transform an object twice.
func (s *Store[V]) kept(object any) (*Kept[V], error) {
	if k, ok := object.(*Kept[V]); ok {
		return k, nil
	}
	named, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	k := &Kept[V]{Value: s.keep(object)}
	k.Namespace, k.Name, k.ResourceVersion = unique.Make(named.GetNamespace()).Value(), named.GetName(), named.GetResourceVersion()
	return k, nil
}

// Add implements cache.ReflectorStore.
func (s *Store[V]) Add(object any) error {
	k, err := s.kept(object)
	if err != nil {
		return err
	}
	name := nameOf(k)
	s.mu.Lock()
	before, known := s.values[name]
	s.values[name] = k.Value
	s.mu.Unlock()
	if !known || !s.same(before, k.Value) {
		s.changed(name)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *Store[V]) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *Store[V]) Delete(object any) error {
	named, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	name := nameOf(named)
	s.mu.Lock()
	delete(s.values, name)
	s.mu.Unlock()
	s.changed(name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *Store[V]) Replace(all []any, _ string) error {
	values := make(map[types.NamespacedName]V, len(all))
	for _, object := range all {
		k, err := s.kept(object)
		if err != nil {
			return err
		}
		values[nameOf(k)] = k.Value
	}
	s.mu.Lock()
	before, read := s.values, s.read
	s.values, s.read = values, true
	s.mu.Unlock()
	if !read {
		return nil
	}
	for name, is := range values {
		if was, known := before[name]; !known || !s.same(was, is) {
			s.changed(name)
		}
	}
	for name := range before {
		if _, here := values[name]; !here {
			s.changed(name)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *Store[V]) Resync() error { return nil }

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

var _ cache.TransformingStore = (*Store[any])(nil)
