package bundle

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastAppliedAnnotations are the annotations in which tools keep a copy of the whole object,
// which includes the data of a Secret or the environment of a pod.
var lastAppliedAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"objectset.rio.cattle.io/applied",
	"banzaicloud.com/last-applied",
}

// dataFields are the fields of ConfigMaps and Secrets that hold data.
var dataFields = []string{"data", "binaryData", "stringData"}

// envListSuffixes are the suffixes of the names of lists that hold environment
// variables in custom resources, such as extraEnv, podEnv or extraEnvVars.
var envListSuffixes = []string{"env", "Env", "envVars", "EnvVars"}

// Redact removes from an object, in place, what the readers of a bundle may not see
// or do not need: managed fields, annotations in which tools keep a copy of the
// object, the data of ConfigMaps and Secrets, also within other objects, and literal
// values of environment variables and HTTP headers in objects of any kind. Variables
// are also a map env, and items with a name in a list whose name ends in env or
// envVars; their names and valueFrom stay.
//
// Redact keeps commands, arguments and other annotations, which everyone who may read
// the pod may read, and a manifest that is a single string.
func Redact(object *unstructured.Unstructured) {
	redactValue(object.Object)
}

// isDataHolder reports whether the object is a ConfigMap or a Secret.
func isDataHolder(object map[string]any) bool {
	kind := text(object["kind"])
	if kind != "ConfigMap" && kind != "Secret" {
		return false
	}
	return groupOf(object) == ""
}

// redactValue redacts a value and all values in it.
func redactValue(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			redactValue(item)
		}
	case map[string]any:
		if isDataHolder(v) {
			for _, field := range dataFields {
				delete(v, field)
			}
		}
		for name, field := range v {
			redactField(v, name, field)
		}
	}
}

// redactField redacts one field of an object, and all values in it.
func redactField(parent map[string]any, name string, field any) {
	switch name {
	case "metadata":
		if metadata, ok := field.(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	case "annotations":
		if annotations, ok := field.(map[string]any); ok && dropLastApplied(annotations) {
			delete(parent, name)
			return
		}
	case "env", "httpHeaders":
		if list, ok := field.([]any); ok {
			parent[name] = namesOnly(list)
			return
		}
		if variables, ok := field.(map[string]any); ok && name == "env" {
			dropMapValues(variables)
			return
		}
	default:
		if list, ok := field.([]any); ok && isEnvListName(name) {
			dropListValues(list)
		}
	}
	redactValue(field)
}

// isEnvListName reports whether a list of that name holds environment variables.
func isEnvListName(name string) bool {
	return slices.ContainsFunc(envListSuffixes, func(end string) bool { return strings.HasSuffix(name, end) })
}

// dropListValues removes the value from the items of a list that have a name.
func dropListValues(list []any) {
	for _, item := range list {
		if variable, ok := item.(map[string]any); ok && variable["name"] != nil {
			delete(variable, "value")
		}
	}
}

// dropMapValues removes everything but the names, and valueFrom where there is one, from a map of variables by name.
func dropMapValues(variables map[string]any) {
	for name, value := range variables {
		variable, ok := value.(map[string]any)
		if !ok {
			variables[name] = nil
			continue
		}
		maps.DeleteFunc(variable, func(field string, _ any) bool { return field != "valueFrom" })
	}
}

// dropLastApplied removes lastAppliedAnnotations from annotations, and reports whether no annotation is left.
func dropLastApplied(annotations map[string]any) bool {
	before := len(annotations)
	for _, name := range lastAppliedAnnotations {
		delete(annotations, name)
	}
	return before > 0 && len(annotations) == 0
}

// namesOnly returns the items of a list of variables or headers with only name and valueFrom. It omits items that are not objects.
func namesOnly(list []any) []any {
	kept := make([]any, 0, len(list))
	for _, item := range list {
		variable, ok := item.(map[string]any)
		if !ok {
			continue
		}
		named := map[string]any{}
		for _, field := range []string{"name", "valueFrom"} {
			if value, ok := variable[field]; ok {
				named[field] = value
			}
		}
		kept = append(kept, named)
	}
	return kept
}
