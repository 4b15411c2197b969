package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// parseObject reads the parts of an object that rules use. The result only identifies the object.
func parseObject(root map[string]any) (*object, healthscope.Result) {
	o := &object{root: root}
	o.metadata = o.child(root, "metadata")
	o.status = o.child(root, "status")
	o.spec, _ = root["spec"].(map[string]any)
	var r healthscope.Result
	r.Group, r.Version = splitAPIVersion(o.text(root, "apiVersion"))
	r.Kind = o.text(root, "kind")
	if r.Kind == "" {
		o.problemf("kind is missing")
	}
	r.Namespace = o.text(o.metadata, "metadata.namespace")
	r.Name = o.text(o.metadata, "metadata.name")
	r.UID = stringValue(o.metadata["uid"])
	r.Owner = controllerOf(o.metadata)
	o.generation, _ = o.optionalNumber(o.metadata, "metadata.generation")
	o.deleting = stringValue(o.metadata["deletionTimestamp"]) != ""
	finalizers, _ := o.metadata["finalizers"].([]any)
	for _, finalizer := range finalizers {
		o.finalizers = append(o.finalizers, stringValue(finalizer))
	}
	o.observed, o.hasObserved = generationNumber(o.status["observedGeneration"])
	o.readConditions()
	return o, r
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
		if isController, _ := reference["controller"].(bool); !isController {
			continue
		}
		if found := ownerReference(stringValue(reference["apiVersion"]), stringValue(reference["kind"]), stringValue(reference["name"])); found != nil {
			return found
		}
	}
	return nil
}

// ownerReference returns the owner that an ownerReference names; nil when it names none.
func ownerReference(apiVersion, kind, name string) *healthscope.Owner {
	if kind == "" || name == "" {
		return nil
	}
	group, _ := splitAPIVersion(apiVersion)
	return &healthscope.Owner{Group: group, Kind: kind, Name: name}
}
