package monitor

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// store holds the objects of one watch by the value of their label. A
// reflector writes it: whole lists and single changes, each visible at once or
// not at all.
type store struct {
	// key is the label key that all objects carry.
	key string
	// changed is called after a change with the claims whose objects differ now. It may be slow.
	changed func(sets.Set[claim])
	// filled is called after the store took a whole list.
	filled func()

	mu      sync.RWMutex
	objects map[types.NamespacedName]*packed
	members map[claim]map[string]*packed
}

var _ cache.TransformingStore = &store{}

func newStore(key string) *store {
	return &store{
		key:     key,
		objects: map[types.NamespacedName]*packed{},
		members: map[claim]map[string]*packed{},
	}
}

// appendMembers appends the objects of a claim to objects.
func (s *store) appendMembers(objects []*packed, c claim) []*packed {
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
	object, err := pack(obj, s.key)
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
	object, err := pack(obj, s.key)
	if err != nil {
		return err
	}
	touched := sets.New[claim]()
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
		object, err := pack(item, s.key)
		if err != nil {
			return err
		}
		objects[object.name()] = object
	}
	s.replace(objects)
	s.filled()
	return nil
}

// replace makes objects the content of the store.
func (s *store) replace(objects map[types.NamespacedName]*packed) {
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

// Transformer makes the reflector pack objects as they arrive, so that a long
// list is never in memory unpacked.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		return pack(obj, s.key)
	}
}

// put stores an object and notes whose content that changes: of the label's
// value and, when the object had another one before, of that too. The same
// version again (a list after a broken watch) changes nothing.
func (s *store) put(object *packed, touched sets.Set[claim]) {
	name, c := object.name(), s.claimOf(object)
	if earlier, known := s.objects[name]; known {
		if earlier.sameAs(object) {
			return
		}
		if s.claimOf(earlier) != c {
			s.remove(name, touched)
		}
	}
	if s.members[c] == nil {
		s.members[c] = map[string]*packed{}
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

func (s *store) claimOf(object *packed) claim {
	return claim{namespace: object.Namespace, key: s.key, value: object.value}
}
