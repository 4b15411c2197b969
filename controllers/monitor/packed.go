package monitor

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

// packed is an object as a store holds it: redacted, and as compressed JSON, because decoded maps take many times the memory and most
// objects are read rarely. The metadata is what a reflector needs for its own stores.
type packed struct {
	metav1.ObjectMeta

	// value is the value of the store's label key or, in a store without one, the group in the name of a CRD or an APIService, after the first dot.
	value string
	text  []byte
}

// pack removes from an object what a bundle must not or need not hold, and packs the rest. It returns a packed object as it is, and packs
// metadata as an object of the kind that has only metadata.
func pack(obj any, kind schema.GroupVersionKind, key string) (*packed, error) {
	var object *unstructured.Unstructured
	switch o := obj.(type) {
	case *packed:
		return o, nil
	case *unstructured.Unstructured:
		object = o
	case *metav1.PartialObjectMetadata:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("cannot store metadata of %s %q: %w", kind.Kind, o.Name, err)
		}
		object = &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(kind)
	default:
		return nil, fmt.Errorf("cannot store %T: want an unstructured object or metadata", obj)
	}
	bundle.Redact(object)
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot store %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if text, err = deflate(text); err != nil {
		return nil, fmt.Errorf("cannot store %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	value := object.GetLabels()[key]
	if key == "" {
		_, value, _ = strings.Cut(object.GetName(), ".")
	}
	return &packed{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       object.GetNamespace(),
			Name:            object.GetName(),
			UID:             object.GetUID(),
			ResourceVersion: object.GetResourceVersion(),
		},
		value: value,
		text:  text,
	}, nil
}

// unpack returns the object.
func (p *packed) unpack() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	text, err := inflate(p.text)
	if err == nil {
		err = utiljson.Unmarshal(text, &object.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot unpack object %q: %w", cache.MetaObjectToName(p).AsNamespacedName(), err)
	}
	return object, nil
}
