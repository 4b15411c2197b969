package bundle

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// item is an object of a bundle with its result.
type item struct {
	// object is nil for an object that cannot be read at present.
	object map[string]any
	result healthscope.Result
	// fromPrevious is true for an object that cannot be read and is known from a previous status only.
	fromPrevious bool
}

// evaluate evaluates an object of a cluster by the user's rules and the built-in rules.
func evaluate(cluster string, object map[string]any, user rules.UserRules) item {
	result := rules.Evaluate(&unstructured.Unstructured{Object: object}, rules.Options{User: user})
	result.Cluster = cluster
	return item{object: object, result: result}
}

// results returns the results of items.
func results(items []item) []healthscope.Result {
	list := make([]healthscope.Result, len(items))
	for i := range items {
		list[i] = items[i].result
	}
	return list
}

// groupOf returns the API group of an object. The core group has the empty name.
func groupOf(object map[string]any) string {
	if group, _, ok := strings.Cut(text(object["apiVersion"]), "/"); ok {
		return group
	}
	return ""
}

// text returns a string; empty for a value that is not a string.
func text(value any) string {
	s, _ := value.(string)
	return s
}

// child returns a field that is an object; nil when the field is absent or not an object.
func child(parent map[string]any, name string) map[string]any {
	object, _ := parent[name].(map[string]any)
	return object
}

// labelsOf returns the labels of an object, without values that are not strings.
func labelsOf(object map[string]any) map[string]string {
	raw := child(child(object, "metadata"), "labels")
	labels := make(map[string]string, len(raw))
	for name, value := range raw {
		if s, ok := value.(string); ok {
			labels[name] = s
		}
	}
	return labels
}

// clone returns a copy of a JSON value that shares no map and no slice with it.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, field := range v {
			object[name] = clone(field)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, entry := range v {
			list[i] = clone(entry)
		}
		return list
	default:
		return value
	}
}
