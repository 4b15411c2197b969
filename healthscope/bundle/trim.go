package bundle

import "maps"

// podFields are the fields of a pod's spec, and containerFields those of its
// containers, that trim keeps: they describe what runs, where, and for how long.
var (
	podFields = []string{
		"activeDeadlineSeconds", "containers", "ephemeralContainers", "hostNetwork", "initContainers", "nodeName", "priorityClassName",
		"readinessGates", "restartPolicy", "runtimeClassName", "schedulingGates", "serviceAccountName", "terminationGracePeriodSeconds",
	}
	containerFields = []string{"image", "name", "ports", "resources", "restartPolicy"}
)

// containerLists are the fields of a pod's spec that hold containers.
var containerLists = []string{"containers", "ephemeralContainers", "initContainers"}

// trim returns an object as a list holds it; it shares its values with the given
// object. It is whole, except for the spec of a pod or ReplicaSet that has a
// controller: probes, mounts, environment and the like repeat the template of that
// controller, and would be the largest part of a bundle.
func trim(object map[string]any) map[string]any {
	spec := child(object, "spec")
	if spec == nil || !hasController(object) {
		return object
	}
	switch group := groupOf(object); {
	case group == "" && text(object["kind"]) == "Pod":
		spec = trimPod(spec)
	case group == "apps" && text(object["kind"]) == "ReplicaSet":
		spec = maps.Clone(spec)
		delete(spec, "template")
	default:
		return object
	}
	trimmed := maps.Clone(object)
	trimmed["spec"] = spec
	return trimmed
}

// hasController reports whether an object has a controller.
func hasController(object map[string]any) bool {
	owners, _ := child(object, "metadata")["ownerReferences"].([]any)
	for _, o := range owners {
		if owner, ok := o.(map[string]any); ok && owner["controller"] == true {
			return true
		}
	}
	return false
}

func trimPod(spec map[string]any) map[string]any {
	kept := selectFields(spec, podFields)
	for _, name := range containerLists {
		list, ok := kept[name].([]any)
		if !ok {
			continue
		}
		containers := make([]any, len(list))
		for i, c := range list {
			containers[i] = c
			if container, ok := c.(map[string]any); ok {
				containers[i] = selectFields(container, containerFields)
			}
		}
		kept[name] = containers
	}
	return kept
}

// selectFields returns a copy of an object that has the given fields only.
func selectFields(object map[string]any, fields []string) map[string]any {
	kept := make(map[string]any, len(fields))
	for _, name := range fields {
		if value, ok := object[name]; ok {
			kept[name] = value
		}
	}
	return kept
}
