package rules

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/healthscope/healthscope/healthscope"
)

// open prepares an object for its rule, and returns with it a result that says
// which object it is, and nothing else. The object is nil when there is nothing in it.
func open(from runtime.Object) (*object, healthscope.Result) {
	if u, ok := from.(*unstructured.Unstructured); ok {
		if u == nil || len(u.Object) == 0 {
			return nil, healthscope.Result{}
		}
		return openJSON(u.Object)
	}
	value := reflect.ValueOf(from)
	if !value.IsValid() || value.Kind() != reflect.Pointer || value.IsNil() {
		return nil, healthscope.Result{}
	}
	if kind, ok := typedKinds[value.Type()]; ok {
		if accessor, ok := from.(metav1.ObjectMetaAccessor); ok {
			return openTyped(from, kind, accessor.GetObjectMeta())
		}
	}
	root, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil || len(root) == 0 {
		return nil, healthscope.Result{}
	}
	return openJSON(root)
}

// openTyped prepares an object in its Go type.
func openTyped(from runtime.Object, kind typedKind, metadata metav1.Object) (*object, healthscope.Result) {
	o := &object{
		typed:       from,
		deleting:    !metadata.GetDeletionTimestamp().IsZero(),
		finalizers:  metadata.GetFinalizers(),
		annotations: metadata.GetAnnotations(),
	}
	o.generation = o.typedNumber(metadata.GetGeneration(), "metadata.generation")
	var r healthscope.Result
	r.Group, r.Kind, r.Version = kind.group, kind.kind, kind.version
	if version := from.GetObjectKind().GroupVersionKind().Version; version != "" {
		r.Version = version
	}
	r.Namespace, r.Name, r.UID = metadata.GetNamespace(), metadata.GetName(), string(metadata.GetUID())
	for _, reference := range metadata.GetOwnerReferences() {
		if reference.Controller != nil && *reference.Controller {
			if r.Owner = owner(reference.APIVersion, reference.Kind, reference.Name); r.Owner != nil {
				break
			}
		}
	}
	return o, r
}

// openJSON prepares an object in the JSON of the API.
func openJSON(root map[string]any) (*object, healthscope.Result) {
	o := &object{root: root}
	o.metadata = o.child(root, "metadata")
	o.status = o.child(root, "status")
	o.spec, _ = root["spec"].(map[string]any)
	var r healthscope.Result
	r.Group, r.Version = splitAPIVersion(o.text(root, "apiVersion"))
	r.Kind = o.text(root, "kind")
	if r.Kind == "" {
		o.failf("kind is missing")
	}
	r.Namespace = o.text(o.metadata, "metadata.namespace")
	r.Name = o.text(o.metadata, "metadata.name")
	r.UID = word(o.metadata["uid"])
	r.Owner = controller(o.metadata)
	o.generation, _ = o.count(o.metadata, "metadata.generation")
	o.deleting = word(o.metadata["deletionTimestamp"]) != ""
	finalizers, _ := o.metadata["finalizers"].([]any)
	for _, finalizer := range finalizers {
		o.finalizers = append(o.finalizers, word(finalizer))
	}
	o.observed, o.hasObserved = generationNumber(o.status["observedGeneration"])
	o.readConditions()
	return o, r
}

// splitAPIVersion splits an apiVersion into group and version. The core group has the empty name.
func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}

// controller returns the owner that ownerReferences name as the controller; nil when there is none.
func controller(metadata map[string]any) *healthscope.Owner {
	references, _ := metadata["ownerReferences"].([]any)
	for _, item := range references {
		reference, _ := item.(map[string]any)
		if isController, _ := reference["controller"].(bool); !isController {
			continue
		}
		if found := owner(word(reference["apiVersion"]), word(reference["kind"]), word(reference["name"])); found != nil {
			return found
		}
	}
	return nil
}

// owner returns the owner that an ownerReference names; nil when it names none.
func owner(apiVersion, kind, name string) *healthscope.Owner {
	if kind == "" || name == "" {
		return nil
	}
	group, _ := splitAPIVersion(apiVersion)
	return &healthscope.Owner{Group: group, Kind: kind, Name: name}
}

// content returns the JSON of the object.
func (o *object) content(apiVersion, kind string) map[string]any {
	if o.root != nil {
		return o.root
	}
	root, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.typed)
	if err != nil { // A type of k8s.io/api that has no JSON does not exist.
		return nil
	}
	root["apiVersion"], root["kind"] = apiVersion, kind
	return root
}
