package dynamicclient

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// serializer is the serializer of a dynamic client, with other decoders for what is watched.
type serializer struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns those of the dynamic client, JSON with other decoders.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	types := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range types {
		if t := &types[i]; t.MediaType == runtime.ContentTypeJSON && t.StreamSerializer != nil {
			stream := *t.StreamSerializer
			stream.Serializer = eventDecoder{stream.Serializer}
			t.Serializer, t.StreamSerializer = objectDecoder{t.Serializer}, &stream
		}
	}
	return types
}

// eventDecoder decodes the events of a watch.
type eventDecoder struct{ runtime.Serializer }

// Decode finds the object of an event. It shares its memory with data, as it is decoded before the next event is read.
// The framer has seen that data is JSON. What is not written as Kubernetes writes it is left to the usual decoder.
func (d eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return d.Serializer.Decode(data, defaults, into)
	}
	name, object, ok := splitEvent(data)
	if !ok {
		return d.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = name, object
	return event, defaults, nil
}

// objectDecoder decodes objects.
type objectDecoder struct{ runtime.Serializer }

// Decode makes an unstructured object of the object of an event, also of a kind Status that is not Kubernetes' own. By that
// an API server reports an error: it is left to the usual decoder, and so are the answers to all other requests, which
// come with a kind to assume or an object to fill, and what has no kind or is no object, for its error.
func (d objectDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil || defaults != nil {
		return d.Serializer.Decode(data, defaults, into)
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &object.Object); err != nil {
		return d.Serializer.Decode(data, nil, nil)
	}
	kind := object.GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" || kind.Group == "" && kind.Kind == "Status" {
		return d.Serializer.Decode(data, nil, nil)
	}
	return object, &kind, nil
}

var (
	typePrefix   = []byte(`{"type":"`)
	objectPrefix = []byte(`","object":`)
)

// splitEvent takes an event apart that is written {"type":"ADDED","object":{...}}, as Kubernetes does, and reports whether it
// is. The event must be valid JSON.
func splitEvent(event []byte) (name string, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(event, typePrefix)
	if !ok {
		return "", nil, false
	}
	word, rest, ok := bytes.Cut(rest, objectPrefix)
	if !ok || bytes.ContainsAny(word, `"\`) {
		return "", nil, false
	}
	end := objectEnd(rest)
	if end < 0 || string(rest[end:]) != "}" {
		return "", nil, false
	}
	return string(word), rest[:end], true
}

// objectEnd returns where the JSON object ends that data begins with, or -1 when data begins with none.
func objectEnd(data []byte) int {
	if !bytes.HasPrefix(data, []byte("{")) {
		return -1
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
