package bundle

import "maps"

// podFields are the fields of a pod's spec, and containerFields those of its
// containers, that say where and as what it runs and how long it may take.
var (
	podFields = []string{
		"activeDeadlineSeconds", "containers", "ephemeralContainers", "hostNetwork", "initContainers", "nodeName", "priorityClassName",
		"readinessGates", "restartPolicy", "runtimeClassName", "schedulingGates", "serviceAccountName", "terminationGracePeriodSeconds",
	}
	containerFields = []string{"image", "name", "ports", "resources", "restartPolicy"}
)

// containerLists are the fields of a pod's spec that hold containers.
var containerLists = []string{"containers", "ephemeralContainers", "initContainers"}

// trim returns an object as a list has it, which shares everything with the
// object. It is whole, except for the spec of a pod or ReplicaSet that has a
// controller: probes, mounts, environment and the like are in the template of
// that controller, repeated in each of its pods, and would be most of what a
// bundle weighs.
func trim(object map[string]any) map[string]any {
	spec := child(object, "spec")
	if spec == nil || !controlled(object) {
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
	short := maps.Clone(object)
	short["spec"] = spec
	return short
}

// controlled reports whether an object has a controller.
func controlled(object map[string]any) bool {
	owners, _ := child(object, "metadata")["ownerReferences"].([]any)
	for _, o := range owners {
		if owner, ok := o.(map[string]any); ok && owner["controller"] == true {
			return true
		}
	}
	return false
}

func trimPod(spec map[string]any) map[string]any {
	kept := only(spec, podFields)
	for _, name := range containerLists {
		list, ok := kept[name].([]any)
		if !ok {
			continue
		}
		containers := make([]any, len(list))
		for i, c := range list {
			containers[i] = c
			if container, ok := c.(map[string]any); ok {
				containers[i] = only(container, containerFields)
			}
		}
		kept[name] = containers
	}
	return kept
}

// only returns an object with those of its fields.
func only(object map[string]any, fields []string) map[string]any {
	kept := make(map[string]any, len(fields))
	for _, name := range fields {
		if value, ok := object[name]; ok {
			kept[name] = value
		}
	}
	return kept
}
