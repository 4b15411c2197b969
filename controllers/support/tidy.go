package support

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ourAnnotations begins the names of annotations that are kept. Others may hold anything, such as a copy of the object.
const ourAnnotations = "healthscope.core.oam.dev/"

// tidyAnnotations removes annotations at a path but for ours.
func tidyAnnotations(object map[string]any, path ...string) {
	annotations, _, _ := unstructured.NestedMap(object, path...)
	for name := range annotations {
		if !strings.HasPrefix(name, ourAnnotations) {
			unstructured.RemoveNestedField(object, append(path, name)...)
		}
	}
}

// tidyWorkload leaves out what the specification of pods may hold in secrets, in a pod or in what makes pods.
func tidyWorkload(o *unstructured.Unstructured) {
	tidyMeta(o)
	tidyAnnotations(o.Object, "spec", "template", "metadata", "annotations")
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}} {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(path, list)...)
			hideValues(containers)
		}
	}
}

// hideValues replaces the values of environment variables and of the headers of probes: what has a name and a value.
func hideValues(in any) {
	switch in := in.(type) {
	case []any:
		for _, item := range in {
			hideValues(item)
		}
	case map[string]any:
		if _, named := in["name"]; named && in["value"] != nil {
			in["value"] = notShown
		}
		for _, item := range in {
			hideValues(item)
		}
	}
}

// tidyBundle counts the whole objects in a bundle instead of showing them: those that other monitors have written may hold anything.
func tidyBundle(o *unstructured.Unstructured) {
	tidyMeta(o)
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for name, value := range status {
		if list, ok := value.([]any); ok && strings.HasSuffix(name, "Statuses") {
			status[name] = strconv.Itoa(len(list)) + " objects, " + notShown
		}
	}
	if status != nil {
		o.Object["status"] = status
	}
}

// tidyMeta leaves of an object's metadata what is of use and known to be harmless.
func tidyMeta(o *unstructured.Unstructured) {
	tidyAnnotations(o.Object, "metadata", "annotations")
	fields := o.GetManagedFields() // Who writes is of use, and what is not.
	for i := range fields {
		fields[i].FieldsV1 = nil
	}
	o.SetManagedFields(fields)
}
