package monitor

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// store holds the objects of one watch by the value of their label. A
// reflector writes it: whole lists and single changes, each visible at once or
// not at all.
type store struct {
	// kind is the kind of all objects.
	kind schema.GroupVersionKind
	// key is the label key that all objects carry.
	key string
	// changed is called after a change with the keys whose objects differ now. It may be slow.
	changed func(sets.Set[selectorKey])

	mu      sync.RWMutex
	objects map[types.NamespacedName]*packed
	// members are the objects by value, namespace and name.
	members map[string]map[string]map[string]*packed
}

var _ cache.TransformingStore = &store{}

func newStore(kind schema.GroupVersionKind, key string) *store {
	return &store{
		kind:    kind,
		key:     key,
		objects: map[types.NamespacedName]*packed{},
		members: map[string]map[string]map[string]*packed{},
	}
}

// appendMembers appends to objects those that a bundle's key selects: of its
// namespace or, when it has none, of all namespaces and of the cluster.
func (s *store) appendMembers(objects []*packed, c selectorKey) []*packed {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c.namespace != "" {
		for _, object := range s.members[c.value][c.namespace] {
			objects = append(objects, object)
		}
		return objects
	}
	for _, inNamespace := range s.members[c.value] {
		for _, object := range inNamespace {
			objects = append(objects, object)
		}
	}
	return objects
}

// selectorKeys returns the keys of all objects.
func (s *store) selectorKeys() sets.Set[selectorKey] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := sets.New[selectorKey]()
	for value, namespaces := range s.members {
		for namespace := range namespaces {
			all.Insert(selectorKey{namespace: namespace, key: s.key, value: value})
		}
	}
	return all
}

// Add takes an object that appeared.
func (s *store) Add(obj any) error {
	return s.Update(obj)
}

// Update takes an object that changed.
func (s *store) Update(obj any) error {
	object, err := s.pack(obj)
	if err != nil {
		return err
	}
	touched := sets.New[selectorKey]()
	s.mu.Lock()
	s.put(object, touched)
	s.mu.Unlock()
	s.changed(touched)
	return nil
}

// Delete takes the last state of an object that is gone or lost the label.
func (s *store) Delete(obj any) error {
	object, err := s.pack(obj)
	if err != nil {
		return err
	}
	touched := sets.New[selectorKey]()
	s.mu.Lock()
	s.remove(object.name(), touched)
	s.mu.Unlock()
	s.changed(touched)
	return nil
}

// Replace takes a whole list: what is not in it is gone.
func (s *store) Replace(list []any, _ string) error {
	objects := make(map[types.NamespacedName]*packed, len(list))
	for _, item := range list {
		object, err := s.pack(item)
		if err != nil {
			return err
		}
		objects[object.name()] = object
	}
	s.replace(objects)
	return nil
}

// replace makes objects the content of the store.
func (s *store) replace(objects map[types.NamespacedName]*packed) {
	touched := sets.New[selectorKey]()
	s.mu.Lock()
	for name := range s.objects {
		if objects[name] == nil {
			s.remove(name, touched)
		}
	}
	for _, object := range objects {
		s.put(object, touched)
	}
	s.mu.Unlock()
	s.changed(touched)
}

// Resync does nothing: what has not changed needs no notification.
func (s *store) Resync() error {
	return nil
}

// Transformer makes the reflector pack objects as they arrive, so that a long
// list is never in memory unpacked.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		return s.pack(obj)
	}
}

func (s *store) pack(obj any) (*packed, error) {
	return pack(obj, s.kind, s.key)
}

// put stores an object and notes whose content that changes: of the label's
// value and, when the object had another one before, of that too. The same
// version again (a list after a broken watch) changes nothing.
func (s *store) put(object *packed, touched sets.Set[selectorKey]) {
	name := object.name()
	if earlier, known := s.objects[name]; known {
		if earlier.sameAs(object) {
			return
		}
		if earlier.value != object.value {
			s.remove(name, touched)
		}
	}
	namespaces := s.members[object.value]
	if namespaces == nil {
		namespaces = map[string]map[string]*packed{}
		s.members[object.value] = namespaces
	}
	if namespaces[name.Namespace] == nil {
		namespaces[name.Namespace] = map[string]*packed{}
	}
	namespaces[name.Namespace][name.Name] = object
	s.objects[name] = object
	touched.Insert(s.selectorKeyOf(object))
}

// remove drops an object and notes whose content that changes.
func (s *store) remove(name types.NamespacedName, touched sets.Set[selectorKey]) {
	object, known := s.objects[name]
	if !known {
		return
	}
	delete(s.objects, name)
	namespaces := s.members[object.value]
	delete(namespaces[name.Namespace], name.Name)
	if len(namespaces[name.Namespace]) == 0 {
		delete(namespaces, name.Namespace)
	}
	if len(namespaces) == 0 {
		delete(s.members, object.value)
	}
	touched.Insert(s.selectorKeyOf(object))
}

func (s *store) selectorKeyOf(object *packed) selectorKey {
	return selectorKey{namespace: object.Namespace, key: s.key, value: object.value}
}
