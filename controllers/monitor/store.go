package monitor

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

// store holds the objects of one watch, stripped, by the value of their label.
// A reflector writes it: whole lists and single changes, each visible at once
// or not at all. Whoever reads an object must not change it.
type store struct {
	// key is the label key that all objects carry.
	key string
	// changed is called after a change with the claims whose objects differ now. It may be slow.
	changed func(sets.Set[claim])
	// filled is called after the store took a whole list.
	filled func()

	mu      sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	members map[claim]map[string]*unstructured.Unstructured
}

var _ cache.TransformingStore = &store{}

func newStore(key string) *store {
	return &store{
		key:     key,
		objects: map[types.NamespacedName]*unstructured.Unstructured{},
		members: map[claim]map[string]*unstructured.Unstructured{},
	}
}

// appendMembers appends the objects of a claim to objects.
func (s *store) appendMembers(objects []*unstructured.Unstructured, c claim) []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, object := range s.members[c] {
		objects = append(objects, object)
	}
	return objects
}

// Add takes an object that appeared.
func (s *store) Add(obj any) error {
	return s.Update(obj)
}

// Update takes an object that changed.
func (s *store) Update(obj any) error {
	object, err := stripped(obj)
	if err != nil {
		return err
	}
	touched := sets.New[claim]()
	s.mu.Lock()
	s.put(object, touched)
	s.mu.Unlock()
	s.changed(touched)
	return nil
}

// Delete takes the last state of an object that is gone or lost the label.
func (s *store) Delete(obj any) error {
	object, err := stripped(obj)
	if err != nil {
		return err
	}
	touched := sets.New[claim]()
	s.mu.Lock()
	s.remove(nameOf(object), touched)
	s.mu.Unlock()
	s.changed(touched)
	return nil
}

// Replace takes a whole list: what is not in it is gone.
func (s *store) Replace(list []any, _ string) error {
	objects := make(map[types.NamespacedName]*unstructured.Unstructured, len(list))
	for _, item := range list {
		object, err := stripped(item)
		if err != nil {
			return err
		}
		objects[nameOf(object)] = object
	}
	s.replace(objects)
	s.filled()
	return nil
}

// replace makes objects the content of the store.
func (s *store) replace(objects map[types.NamespacedName]*unstructured.Unstructured) {
	touched := sets.New[claim]()
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

// Resync does nothing: nobody needs to hear again what has not changed.
func (s *store) Resync() error {
	return nil
}

// Transformer makes the reflector strip objects as they arrive, so that a long
// list is never in memory together with all that is dropped from it.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		return stripped(obj)
	}
}

// put stores an object and notes whose content that changes: of the label's
// value and, when the object had another one before, of that too. The same
// version again (a list after a broken watch) changes nothing.
func (s *store) put(object *unstructured.Unstructured, touched sets.Set[claim]) {
	name, c := nameOf(object), s.claimOf(object)
	if earlier, known := s.objects[name]; known {
		if earlier.GetUID() == object.GetUID() && earlier.GetResourceVersion() == object.GetResourceVersion() {
			return
		}
		if s.claimOf(earlier) != c {
			s.remove(name, touched)
		}
	}
	if s.members[c] == nil {
		s.members[c] = map[string]*unstructured.Unstructured{}
	}
	s.members[c][name.Name] = object
	s.objects[name] = object
	touched.Insert(c)
}

// remove drops an object and notes whose content that changes.
func (s *store) remove(name types.NamespacedName, touched sets.Set[claim]) {
	object, known := s.objects[name]
	if !known {
		return
	}
	c := s.claimOf(object)
	delete(s.objects, name)
	delete(s.members[c], name.Name)
	if len(s.members[c]) == 0 {
		delete(s.members, c)
	}
	touched.Insert(c)
}

func (s *store) claimOf(object *unstructured.Unstructured) claim {
	return claim{namespace: object.GetNamespace(), key: s.key, value: object.GetLabels()[s.key]}
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// stripped takes out of an object what a bundle must not or need not hold.
func stripped(obj any) (*unstructured.Unstructured, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("cannot store %T: want an unstructured object", obj)
	}
	bundle.Strip(object)
	return object, nil
}
