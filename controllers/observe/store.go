package observe

import (
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Entry is what a Store keeps of an object: its name and resourceVersion, and a value in place of its content.
type Entry[V any] struct {
	metav1.PartialObjectMetadata

	Value V
}

// Store holds a value for each object of a place. It implements cache.TransformingStore, so that each object is replaced by its value
// as it arrives. It is safe for concurrent use.
type Store[V any] struct {
	convert func(object any) V
	equal   func(a, b V) bool
	changed func(name types.NamespacedName, was, is V)

	mu sync.Mutex
	// values holds the values by namespace and by name.
	values map[string]map[string]V
	// read is true once Replace has stored all objects.
	read bool
}

// NewStore returns an empty store. convert returns the value of an object; it cannot fail, so it returns a special value for an object that
// it cannot read. changed is called after the first Replace for each object that is added, deleted or gets another value, with the values
// before and after; the zero value stands for no object. It must not block.
func NewStore[V any](convert func(object any) V, equal func(a, b V) bool, changed func(name types.NamespacedName, was, is V)) *Store[V] {
	return &Store[V]{convert: convert, equal: equal, changed: changed, values: map[string]map[string]V{}}
}

// Get returns the value of an object; false when there is none.
func (s *Store[V]) Get(name types.NamespacedName) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name.Namespace][name.Name]
	return value, ok
}

// All returns the values of all objects.
func (s *Store[V]) All() map[types.NamespacedName]V {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[types.NamespacedName]V{}
	for namespace, values := range s.values {
		for name, value := range values {
			all[types.NamespacedName{Namespace: namespace, Name: name}] = value
		}
	}
	return all
}

// In returns the values of the objects of a namespace that match accepts, in no order.
func (s *Store[V]) In(namespace string, match func(V) bool) []V {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []V
	for _, value := range s.values[namespace] {
		if match(value) {
			found = append(found, value)
		}
	}
	return found
}

// HasSynced reports whether Replace has stored all objects once.
func (s *Store[V]) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// Transformer implements cache.TransformingStore.
func (s *Store[V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.transform(object) }
}

// transform returns what the store keeps of an object. It returns an *Entry as it is, because a reflector may transform an object twice.
func (s *Store[V]) transform(object any) (*Entry[V], error) {
	if entry, ok := object.(*Entry[V]); ok {
		return entry, nil
	}
	named, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	entry := &Entry[V]{Value: s.convert(object)}
	entry.Namespace, entry.Name, entry.ResourceVersion = unique.Make(named.GetNamespace()).Value(), named.GetName(), named.GetResourceVersion()
	return entry, nil
}

// Add implements cache.ReflectorStore.
func (s *Store[V]) Add(object any) error {
	entry, err := s.transform(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before, known := s.values[entry.Namespace][entry.Name]
	setValue(s.values, entry)
	s.mu.Unlock()
	if !known || !s.equal(before, entry.Value) {
		s.changed(types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name}, before, entry.Value)
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
	name := types.NamespacedName{Namespace: named.GetNamespace(), Name: named.GetName()}
	s.mu.Lock()
	before := s.values[name.Namespace][name.Name]
	delete(s.values[name.Namespace], name.Name)
	if len(s.values[name.Namespace]) == 0 {
		delete(s.values, name.Namespace)
	}
	s.mu.Unlock()
	var gone V
	s.changed(name, before, gone)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *Store[V]) Replace(all []any, _ string) error {
	values := map[string]map[string]V{}
	for _, object := range all {
		entry, err := s.transform(object)
		if err != nil {
			return err
		}
		setValue(values, entry)
	}
	s.mu.Lock()
	before, read := s.values, s.read
	s.values, s.read = values, true
	s.mu.Unlock()
	if read {
		s.compare(before, values)
	}
	return nil
}

// compare calls changed for each object whose value differs between before and after.
func (s *Store[V]) compare(before, after map[string]map[string]V) {
	for namespace, values := range after {
		for name, is := range values {
			if was, known := before[namespace][name]; !known || !s.equal(was, is) {
				s.changed(types.NamespacedName{Namespace: namespace, Name: name}, was, is)
			}
		}
	}
	var gone V
	for namespace, values := range before {
		for name, was := range values {
			if _, here := after[namespace][name]; !here {
				s.changed(types.NamespacedName{Namespace: namespace, Name: name}, was, gone)
			}
		}
	}
}

// Resync implements cache.ReflectorStore.
func (s *Store[V]) Resync() error { return nil }

// setValue sets the value of an entry's object.
func setValue[V any](values map[string]map[string]V, entry *Entry[V]) {
	if values[entry.Namespace] == nil {
		values[entry.Namespace] = map[string]V{}
	}
	values[entry.Namespace][entry.Name] = entry.Value
}

var _ cache.TransformingStore = (*Store[any])(nil)
