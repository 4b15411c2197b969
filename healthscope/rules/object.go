package rules

import (
	"fmt"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// object is the object that is judged, with its result. Its accessors accept a value in any form that has a meaning. They record
// the first value that has no meaning, so that rules need not handle errors.
type object struct {
	healthscope.Result

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

// parseObject reads the parts of an object that rules use. Its result only identifies the object.
func parseObject(root map[string]any) *object {
	o := &object{root: root}
	o.metadata = o.child(root, "metadata")
	o.status = o.child(root, "status")
	o.spec = childObject(root, "spec")
	o.Group, o.Version = splitAPIVersion(o.text(root, "apiVersion"))
	o.Kind = o.text(root, "kind")
	if o.Kind == "" {
		o.problemf("kind is missing")
	}
	o.Namespace = o.text(o.metadata, "metadata.namespace")
	o.Name = o.text(o.metadata, "metadata.name")
	o.UID = stringValue(o.metadata["uid"])
	o.Owner = controllerOf(o.metadata)
	o.generation = o.number(o.metadata, "metadata.generation")
	o.deleting = stringValue(o.metadata["deletionTimestamp"]) != ""
	finalizers, _ := o.metadata["finalizers"].([]any)
	for _, finalizer := range finalizers {
		o.finalizers = append(o.finalizers, stringValue(finalizer))
	}
	o.observed, o.hasObserved = generationNumber(o.status["observedGeneration"])
	o.readConditions()
	return o
}

// splitAPIVersion splits an apiVersion into group and version. The group is empty for the core group.
func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}

// controllerOf returns the owner that ownerReferences name as the controller; nil when there is none.
func controllerOf(metadata map[string]any) *healthscope.Owner {
	references, _ := metadata["ownerReferences"].([]any)
	for _, item := range references {
		reference, _ := item.(map[string]any)
		isController, _ := reference["controller"].(bool)
		kind, name := stringValue(reference["kind"]), stringValue(reference["name"])
		if isController && kind != "" && name != "" {
			group, _ := splitAPIVersion(stringValue(reference["apiVersion"]))
			return &healthscope.Owner{Group: group, Kind: kind, Name: name}
		}
	}
	return nil
}

// groupKind returns the kind of the object.
func (o *object) groupKind() groupKind { return groupKind{o.Group, o.Kind} }

// set sets the state with its reason and message.
func (o *object) set(state healthscope.State, reason healthscope.Reason, message string) {
	o.State, o.Reason, o.Message = state, reason, message
}

// override replaces the result of a rule by one that takes precedence.
func (o *object) override(state healthscope.State, reason healthscope.Reason, message string) {
	o.set(state, reason, message)
	o.Warning, o.Timed = false, false
}

// invalid sets the result of an object that cannot be read. It drops the values that were read, because they are not reliable.
func (o *object) invalid() {
	o.override(healthscope.Unknown, healthscope.ReasonInvalidObject, o.problem)
	o.Serving, o.Suspended, o.Replicas = false, false, nil
}

// warn adds a warning to the result.
func (o *object) warn(reason healthscope.Reason, message string) {
	o.Warning, o.Reason, o.Message = true, reason, message
}

// suspend sets the result of an object that its user has suspended.
func (o *object) suspend(message string) {
	o.set(healthscope.Ready, healthscope.ReasonSuspended, message)
	o.Suspended = true
}

// notObserved sets the result of an object whose controller has not written a status.
func (o *object) notObserved() {
	o.set(healthscope.Pending, healthscope.ReasonNotObserved, "no controller has reported on it yet")
}

// unknownPhase sets the result of an object with a phase that its rule does not know.
func (o *object) unknownPhase(phase string) {
	o.set(healthscope.Pending, healthscope.ReasonUnknownPhase, fmt.Sprintf("the phase %q is not known", phase))
	o.Warning = true
}

// stale reports whether the status belongs to an older generation than that of the object. It is false when one of the generations is missing.
func (o *object) stale() bool { return o.generation > 0 && o.hasObserved && o.observed < o.generation }

// annotation returns an annotation; empty when it is absent.
func (o *object) annotation(name string) string {
	return stringValue(childObject(o.metadata, "annotations")[name])
}

// problemf records a problem if it is the first.
func (o *object) problemf(format string, args ...any) {
	if o.problem == "" {
		o.problem = fmt.Sprintf(format, args...)
	}
}

// field returns the field of parent that the last part of path names. Callers pass whole paths, so that a problem can name its field.
func field(parent map[string]any, path string) any {
	return parent[path[strings.LastIndexByte(path, '.')+1:]]
}

// read returns a field of type T; the zero value when it is absent. A value of another type is a problem.
func read[T any](o *object, parent map[string]any, path, article string) T {
	value := field(parent, path)
	typed, ok := value.(T)
	if !ok && value != nil {
		o.problemf("%s is not %s", path, article)
	}
	return typed
}

// child returns an object within parent; nil when it is absent.
func (o *object) child(parent map[string]any, path string) map[string]any {
	return read[map[string]any](o, parent, path, "an object")
}

// list returns a list within parent; nil when it is absent.
func (o *object) list(parent map[string]any, path string) []any {
	return read[[]any](o, parent, path, "a list")
}

// text returns a string within parent; empty when it is absent.
func (o *object) text(parent map[string]any, path string) string {
	return read[string](o, parent, path, "a string")
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

// flag returns a boolean within parent, which may be written as a string; false when it is absent.
func (o *object) flag(parent map[string]any, path string) bool {
	value := field(parent, path)
	b, ok := boolean(value)
	if !ok && value != nil {
		o.problemf("%s is not a boolean", path)
	}
	return b
}

// optionalNumber returns a whole number within parent that is not negative, and reports whether it exists.
func (o *object) optionalNumber(parent map[string]any, path string) (int64, bool) {
	value := field(parent, path)
	n, ok := wholeNumber(value)
	if ok && n >= 0 {
		return n, true
	}
	if value != nil {
		o.problemf("%s is not a whole number from 0 up", path)
	}
	return 0, false
}

// number returns the same number as optionalNumber; 0 when it does not exist.
func (o *object) number(parent map[string]any, path string) int64 {
	n, _ := o.optionalNumber(parent, path)
	return n
}
