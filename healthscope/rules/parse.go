package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// open prepares an object for its rule, and returns with it a result that names the object, and nothing else.
func open(root map[string]any) (*object, healthscope.Result) {
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
