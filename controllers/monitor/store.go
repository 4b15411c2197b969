package monitor

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// byNamespace is the index of a store: by the value of the label, in the object's namespace and in all, as namespaced formats them.
const byNamespace = "namespace"

// store holds the packed objects of one watch. A reflector writes to it, one write at a time. Each write is atomic for readers.
type store struct {
	// kind is the kind of all objects.
	kind schema.GroupVersionKind
	// key is the label key that all objects carry.
	key string
	// changed is called after each write with the keys whose objects have changed. It may be slow.
	changed func(sets.Set[selectorKey])
	objects cache.Indexer
}

var _ cache.TransformingStore = &store{}

func newStore(kind schema.GroupVersionKind, key string) *store {
	index := func(o any) ([]string, error) {
		p := o.(*packed) //nolint:forcetypeassert // Nothing else is stored.
		return []string{namespaced(p.Namespace, p.value), namespaced(metav1.NamespaceAll, p.value)}, nil
	}
	return &store{kind: kind, key: key, objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byNamespace: index})}
}

// namespaced returns the index value of a label's value in a namespace. Neither contains a slash.
func namespaced(namespace, value string) string { return namespace + "/" + value }

// appendMembers appends to objects those that a bundle's key selects: in its namespace or, if it has none, in all namespaces and the
// cluster.
func (s *store) appendMembers(objects []*packed, c selectorKey) []*packed {
	found, _ := s.objects.ByIndex(byNamespace, namespaced(c.namespace, c.value)) // The index exists.
	for _, o := range found {
		objects = append(objects, o.(*packed)) //nolint:forcetypeassert // Nothing else is stored.
	}
	return objects
}

// selectorKeys returns the keys of all objects, each also without its namespace.
func (s *store) selectorKeys() sets.Set[selectorKey] {
	all := sets.New[selectorKey]()
	for _, v := range s.objects.ListIndexFuncValues(byNamespace) {
		namespace, value, _ := strings.Cut(v, "/")
		all.Insert(selectorKey{namespace: namespace, key: s.key, value: value})
	}
	return all
}

// Add stores a new object.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update stores a changed object.
func (s *store) Update(obj any) error {
	object, err := s.pack(obj)
	if err != nil {
		return err
	}
	touched := sets.New[selectorKey]()
	s.difference(touched, s.stored(object), object)
	if err := s.objects.Update(object); err != nil {
		return err
	}
	s.changed(touched)
	return nil
}

// Delete removes an object that was deleted or lost the label.
func (s *store) Delete(obj any) error {
	object, err := s.pack(obj)
	if err != nil {
		return err
	}
	touched := sets.New[selectorKey]()
	s.difference(touched, s.stored(object), nil)
	if err := s.objects.Delete(object); err != nil {
		return err
	}
	s.changed(touched)
	return nil
}

// Replace stores a whole list, and removes all objects that are not in it.
func (s *store) Replace(list []any, version string) error {
	touched, listed, objects := sets.New[selectorKey](), sets.New[cache.ObjectName](), make([]any, 0, len(list))
	for _, item := range list {
		object, err := s.pack(item)
		if err != nil {
			return err
		}
		s.difference(touched, s.stored(object), object)
		listed.Insert(cache.MetaObjectToName(object))
		objects = append(objects, object)
	}
	for _, o := range s.objects.List() {
		if before := o.(*packed); !listed.Has(cache.MetaObjectToName(before)) { //nolint:forcetypeassert // Nothing else is stored.
			s.difference(touched, before, nil)
		}
	}
	if err := s.objects.Replace(objects, version); err != nil {
		return err
	}
	s.changed(touched)
	return nil
}

// Resync does nothing: unchanged objects need no notification.
func (s *store) Resync() error { return nil }

// Transformer makes the reflector pack objects as they arrive, so that a long list is never in memory unpacked.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.pack(obj) }
}

func (s *store) pack(obj any) (*packed, error) { return pack(obj, s.kind, s.key) }

// stored returns the stored object of the same name; nil if there is none.
func (s *store) stored(object *packed) *packed {
	before, _, _ := s.objects.Get(object) // It has a name.
	p, _ := before.(*packed)
	return p
}

// difference adds to touched the keys whose objects change when one version of an object replaces another, either of which may be nil. An
// object in the stored version, as in a list after a broken watch, changes nothing.
func (s *store) difference(touched sets.Set[selectorKey], before, after *packed) {
	if before != nil && after != nil && before.UID == after.UID && before.ResourceVersion == after.ResourceVersion {
		return
	}
	for _, object := range []*packed{before, after} {
		if object != nil {
			touched.Insert(selectorKey{namespace: object.Namespace, key: s.key, value: object.value})
		}
	}
}
