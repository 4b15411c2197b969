package rules

import (
	"fmt"
	"strings"
)

// object is the object that is judged. Its accessors accept a value in any form that has a meaning, and report whether it exists. They record
// the first value that has no meaning, so that rules need not handle errors.
type object struct {
	// root is the object as JSON of the API; metadata, spec and status are parts of it.
	root, metadata, spec, status map[string]any

	// generation is metadata.generation; 0 when it is not known.
	generation int64
	// observed is status.observedGeneration; hasObserved is true when the status has one.
	observed    int64
	hasObserved bool
	// deleting is true when the object has a deletionTimestamp.
	deleting bool
	// finalizers are those of metadata.finalizers.
	finalizers []string
	// conditions are those of the status.
	conditions []condition
	// conditionsProblem describes why status.conditions cannot be read. It matters only to rules that look for a condition.
	conditionsProblem string
	// deletionBlocker describes what blocks the deletion; empty when that is not known.
	deletionBlocker string
	// problem describes the first part of the object that cannot be read; empty while there is none.
	problem string
}

// stale reports whether the status belongs to an older generation than that of the object. It is false when one of the generations is missing.
func (o *object) stale() bool { return o.generation > 0 && o.hasObserved && o.observed < o.generation }

// annotation returns an annotation; empty when it is absent.
func (o *object) annotation(name string) string {
	annotations, _ := o.metadata["annotations"].(map[string]any)
	return stringValue(annotations[name])
}

// problemf records a problem if it is the first.
func (o *object) problemf(format string, args ...any) {
	if o.problem == "" {
		o.problem = fmt.Sprintf(format, args...)
	}
}

// lastSegment returns the last part of a path such as status.replicas. Callers pass whole paths, so that a problem can name its field.
func lastSegment(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// child returns an object within parent; nil when it is absent.
func (o *object) child(parent map[string]any, path string) map[string]any {
	switch value := parent[lastSegment(path)].(type) {
	case nil:
		return nil
	case map[string]any:
		return value
	default:
		o.problemf("%s is not an object", path)
		return nil
	}
}

// list returns a list within parent; nil when it is absent.
func (o *object) list(parent map[string]any, path string) []any {
	switch value := parent[lastSegment(path)].(type) {
	case nil:
		return nil
	case []any:
		return value
	default:
		o.problemf("%s is not a list", path)
		return nil
	}
}

// children returns the objects of a list within parent; nil when it is absent.
func (o *object) children(parent map[string]any, path string) []map[string]any {
	list := o.list(parent, path)
	if len(list) == 0 {
		return nil
	}
	items := make([]map[string]any, 0, len(list))
	for i, item := range list {
		child, ok := item.(map[string]any)
		if !ok {
			o.problemf("%s[%d] is not an object", path, i)
			return nil
		}
		items = append(items, child)
	}
	return items
}

// text returns a string within parent; empty when it is absent.
func (o *object) text(parent map[string]any, path string) string {
	switch value := parent[lastSegment(path)].(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		o.problemf("%s is not a string", path)
		return ""
	}
}

// flag returns a boolean within parent, which may be written as a string; false when it is absent.
func (o *object) flag(parent map[string]any, path string) bool {
	value, ok := parent[lastSegment(path)]
	if !ok || value == nil {
		return false
	}
	b, ok := boolean(value)
	if !ok {
		o.problemf("%s is not a boolean", path)
	}
	return b
}

// optionalNumber returns a whole number within parent that is not negative, and reports whether it exists.
func (o *object) optionalNumber(parent map[string]any, path string) (int64, bool) {
	value, ok := parent[lastSegment(path)]
	if !ok || value == nil {
		return 0, false
	}
	n, ok := wholeNumber(value)
	if !ok || n < 0 {
		o.problemf("%s is not a whole number from 0 up", path)
		return 0, false
	}
	return n, true
}

// number returns the same number as optionalNumber; 0 when it does not exist.
func (o *object) number(parent map[string]any, path string) int64 {
	n, _ := o.optionalNumber(parent, path)
	return n
}
