package support

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownAnnotationPrefix is the prefix of the annotations that are kept. Others may contain anything, such as a copy of the object.
const ownAnnotationPrefix = "healthscope.core.oam.dev/"

// removeForeignAnnotations removes the annotations at a path whose names do not begin with ownAnnotationPrefix.
func removeForeignAnnotations(object map[string]any, path ...string) {
	annotations, _, _ := unstructured.NestedMap(object, path...)
	for name := range annotations {
		if !strings.HasPrefix(name, ownAnnotationPrefix) {
			unstructured.RemoveNestedField(object, append(path, name)...)
		}
	}
}

// redactWorkload redacts what may be secret in the pod specification of a pod or workload.
func redactWorkload(o *unstructured.Unstructured) {
	redactMetadata(o)
	removeForeignAnnotations(o.Object, "spec", "template", "metadata", "annotations")
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}} {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(path, list)...)
			redactValues(containers)
		}
	}
}

// redactValues redacts the value of each object that has a name and a value, such as environment variables and the headers of probes.
func redactValues(in any) {
	switch in := in.(type) {
	case []any:
		for _, item := range in {
			redactValues(item)
		}
	case map[string]any:
		if _, named := in["name"]; named && in["value"] != nil {
			in["value"] = redacted
		}
		for _, item := range in {
			redactValues(item)
		}
	}
}

// redactBundle replaces the lists of whole objects in a bundle by their number: objects that another monitor has written may contain anything.
func redactBundle(o *unstructured.Unstructured) {
	redactMetadata(o)
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for name, value := range status {
		if list, ok := value.([]any); ok && strings.HasSuffix(name, "Statuses") {
			status[name] = strconv.Itoa(len(list)) + " objects, " + redacted
		}
	}
	if status != nil {
		o.Object["status"] = status
	}
}

// redactMetadata removes foreign annotations, and the field sets of managedFields, from an object's metadata.
func redactMetadata(o *unstructured.Unstructured) {
	removeForeignAnnotations(o.Object, "metadata", "annotations")
	fields := o.GetManagedFields() // The managers are useful, their field sets are not.
	for i := range fields {
		fields[i].FieldsV1 = nil
	}
	o.SetManagedFields(fields)
}
