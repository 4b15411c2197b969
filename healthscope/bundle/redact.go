package bundle

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copies are the annotations in which tools keep a copy of the whole object,
// with the data of a Secret or the environment of a pod in it.
var copies = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"objectset.rio.cattle.io/applied",
	"banzaicloud.com/last-applied",
}

// dataFields are the fields of ConfigMaps and Secrets that hold data.
var dataFields = []string{"data", "binaryData", "stringData"}

// variableLists are the ends of the names of lists that hold environment
// variables in custom resources, such as extraEnv, podEnv or extraEnvVars.
var variableLists = []string{"env", "Env", "envVars", "EnvVars"}

// Redact removes from an object, in place, what may not be shown to the readers
// of a bundle, and what no reader needs: managed fields, annotations in which tools
// keep a copy of the object, the data of ConfigMaps and Secrets, also of those
// that another object carries as a manifest, and literal values of environment
// variables and HTTP headers, in pod specs and templates of any kind. Of an
// environment variable the name and valueFrom stay. A map env counts as
// variables by name, and so does a list whose name ends like env or envVars, as
// far as its items have name and value.
//
// Commands, arguments and annotations other than the copies stay: a password
// that is written there is for everyone to see who may see the pod. So does a
// manifest that is written as one text.
func Redact(object *unstructured.Unstructured) {
	if object != nil {
		redactValue(object.Object)
	}
}

// isDataHolder reports whether the object is a ConfigMap or a Secret, which are there for their data.
func isDataHolder(object map[string]any) bool {
	kind := text(object["kind"])
	if kind != "ConfigMap" && kind != "Secret" {
		return false
	}
	return groupOf(object) == ""
}

// redactValue strips a value and all that is in it.
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

// redactField strips one field of an object, and all that is in it.
func redactField(parent map[string]any, name string, field any) {
	switch name {
	case "metadata":
		if metadata, ok := field.(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	case "annotations":
		if annotations, ok := field.(map[string]any); ok && dropCopies(annotations) {
			delete(parent, name)
			return
		}
	case "env", "httpHeaders":
		if list, ok := field.([]any); ok {
			parent[name] = namesOnly(list)
			return
		}
		if variables, ok := field.(map[string]any); ok && name == "env" {
			dropValues(variables)
			return
		}
	default:
		if list, ok := field.([]any); ok && namesVariables(name) {
			dropNamedValues(list)
		}
	}
	redactValue(field)
}

// namesVariables reports whether the name of a list is one for environment variables.
func namesVariables(name string) bool {
	return slices.ContainsFunc(variableLists, func(end string) bool { return strings.HasSuffix(name, end) })
}

// dropNamedValues removes the value from those items of a list that have name and value.
func dropNamedValues(list []any) {
	for _, item := range list {
		if variable, ok := item.(map[string]any); ok && variable["name"] != nil {
			delete(variable, "value")
		}
	}
}

// dropValues leaves nothing of variables that are listed by name but the names and, where there is one, valueFrom.
func dropValues(variables map[string]any) {
	for name, value := range variables {
		variable, ok := value.(map[string]any)
		if !ok {
			variables[name] = nil
			continue
		}
		maps.DeleteFunc(variable, func(field string, _ any) bool { return field != "valueFrom" })
	}
}

// dropCopies removes the copies from annotations, and reports whether that leaves none.
func dropCopies(annotations map[string]any) bool {
	before := len(annotations)
	for _, name := range copies {
		delete(annotations, name)
	}
	return before > 0 && len(annotations) == 0
}

// namesOnly returns the items of a list of variables or headers with nothing but name and valueFrom. What is no object goes.
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
