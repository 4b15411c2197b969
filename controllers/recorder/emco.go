package recorder

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// The lists that are written in another way than the monitor writes them.
const (
	deployments = "deploymentStatuses"
	others      = "resourceStatuses"
)

// forEMCO returns a status with each object in a list in which EMCO's readers find it, and judge it where they can. It is
// the status itself where nothing has to be moved, and where it cannot be read.
func forEMCO(status json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var generic, judged []json.RawMessage
	if json.Unmarshal(status, &fields) != nil || !decodeList(fields[others], &generic) || !decodeList(fields[deployments], &judged) {
		return status
	}
	kept, replicaSets := splitReplicaSets(generic)
	copied := withoutOwnList(fields)
	if len(replicaSets)+len(copied) == 0 {
		return status
	}
	putList(fields, others, append(kept, copied...))
	putList(fields, deployments, append(judged, replicaSets...))
	if text, err := json.Marshal(fields); err == nil {
		return text
	}
	return status
}

// splitReplicaSets takes the ReplicaSets out of the entries of resourceStatuses, as objects. EMCO takes every object in that
// list for ready. In deploymentStatuses it compares the replicas, and takes the kind of an object from the object itself.
func splitReplicaSets(entries []json.RawMessage) (kept, replicaSets []json.RawMessage) {
	for _, entry := range entries {
		var in bundle.OtherResource
		var object appsv1.ReplicaSet
		if json.Unmarshal(entry, &in) == nil && in.Group == appsv1.GroupName && in.Kind == "ReplicaSet" &&
			json.Unmarshal(in.Res, &object) == nil && object.Kind == in.Kind && object.Spec.Replicas != nil { // EMCO ends when there is no number.
			replicaSets = append(replicaSets, in.Res)
		} else {
			kept = append(kept, entry)
		}
	}
	return kept, replicaSets
}

// withoutOwnList returns entries of resourceStatuses for the objects in those lists that only the first generations of
// EMCO read.
func withoutOwnList(fields map[string]json.RawMessage) []json.RawMessage {
	var first k8spluginv1alpha1.ResourceBundleStateStatus
	first.IngressStatuses, first.SecretStatuses = k8spluginv1alpha1.RawList(fields["ingressStatuses"]), k8spluginv1alpha1.RawList(fields["secretStatuses"])
	var entries []json.RawMessage
	for _, object := range bundle.Objects(&first) {
		u := unstructured.Unstructured{Object: object}
		gvk := u.GroupVersionKind()
		res, err := json.Marshal(object)
		if err != nil {
			continue // It has no JSON form.
		}
		entry, err := json.Marshal(bundle.OtherResource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), Res: res})
		if err == nil {
			entries = append(entries, entry)
		}
	}
	return entries
}

// decodeList reads a list, which may be missing or null.
func decodeList(list json.RawMessage, into *[]json.RawMessage) bool {
	return len(list) == 0 || json.Unmarshal(list, into) == nil
}

// putList writes a list; one without entries is left out.
func putList(fields map[string]json.RawMessage, name string, list []json.RawMessage) {
	delete(fields, name)
	if encoded, err := json.Marshal(list); err == nil && len(list) > 0 {
		fields[name] = encoded
	}
}
