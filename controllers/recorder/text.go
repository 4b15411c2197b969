package recorder

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// emptyStatus is what rsync saves for a bundle whose status no monitor has written.
const emptyStatus = `{"ready":false,"resourceCount":0}`

// textOf returns the status of a bundle as it is saved, and its digest. The text is compact JSON, because EMCO's readers search it for words
// without parsing it.
func textOf(status json.RawMessage) (text, digest string, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, forEMCO(status)); err != nil && len(status) > 0 {
		return "", "", errors.Wrap(err, "cannot read the status of the bundle")
	}
	text = compact.String()
	if text == "" || text == "null" {
		text = emptyStatus
	}
	sum := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(sum[:]), nil
}

// truncate returns a status, marked as truncated, without its longest list of objects, or without resources if it has no list of objects
// any more. It returns false if there is nothing to remove.
func truncate(status string) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(status), &fields) != nil {
		return "", false
	}
	longest := ""
	for name := range new(k8spluginv1alpha1.ResourceBundleStateStatus).Lists() {
		if n := len(fields[name]); n > len(fields[longest]) || n > 0 && n == len(fields[longest]) && name < longest {
			longest = name
		}
	}
	longest = cmp.Or(longest, "resources")
	if len(fields[longest]) == 0 {
		return "", false
	}
	delete(fields, longest)
	fields["truncated"] = json.RawMessage("true")
	data, err := json.Marshal(fields)
	return string(data), err == nil
}

// The lists of a status that forEMCO changes.
const (
	deploymentStatuses = "deploymentStatuses"
	resourceStatuses   = "resourceStatuses"
)

// forEMCO returns a status with each object in a list in which EMCO's readers find it and, where they can, judge it. It returns
// the status unchanged if nothing has to be moved, and if the status cannot be read.
func forEMCO(status json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var generic, judged []json.RawMessage
	if json.Unmarshal(status, &fields) != nil || !decodeList(fields[resourceStatuses], &generic) || !decodeList(fields[deploymentStatuses], &judged) {
		return status
	}
	kept, replicaSets := splitReplicaSets(generic)
	copied := legacyListEntries(fields)
	if len(replicaSets)+len(copied) == 0 {
		return status
	}
	setList(fields, resourceStatuses, append(kept, copied...))
	setList(fields, deploymentStatuses, append(judged, replicaSets...))
	if text, err := json.Marshal(fields); err == nil {
		return text
	}
	return status
}

// splitReplicaSets separates the ReplicaSets, as objects, from the other entries of resourceStatuses. EMCO regards every object in that
// list as ready. For deploymentStatuses it compares the replicas, and reads the kind of an object from the object itself.
func splitReplicaSets(entries []json.RawMessage) (kept, replicaSets []json.RawMessage) {
	for _, entry := range entries {
		var in bundle.OtherResource
		var object appsv1.ReplicaSet
		if json.Unmarshal(entry, &in) == nil && in.Group == appsv1.GroupName && in.Kind == "ReplicaSet" &&
			json.Unmarshal(in.Res, &object) == nil && object.Kind == in.Kind && object.Spec.Replicas != nil { // EMCO crashes without a number of replicas.
			replicaSets = append(replicaSets, in.Res)
		} else {
			kept = append(kept, entry)
		}
	}
	return kept, replicaSets
}

// legacyListEntries returns entries of resourceStatuses for the objects in the lists that only the first generations of
// EMCO read.
func legacyListEntries(fields map[string]json.RawMessage) []json.RawMessage {
	var legacy k8spluginv1alpha1.ResourceBundleStateStatus
	legacy.IngressStatuses, legacy.SecretStatuses = k8spluginv1alpha1.RawList(fields["ingressStatuses"]), k8spluginv1alpha1.RawList(fields["secretStatuses"])
	var entries []json.RawMessage
	for _, object := range bundle.Objects(&legacy) {
		u := unstructured.Unstructured{Object: object}
		gvk := u.GroupVersionKind()
		res, err := json.Marshal(object)
		if err != nil {
			continue // It cannot be encoded as JSON.
		}
		entry, err := json.Marshal(bundle.OtherResource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), Res: res})
		if err == nil {
			entries = append(entries, entry)
		}
	}
	return entries
}

// decodeList decodes a list, which may be missing or null, and reports whether that succeeded.
func decodeList(list json.RawMessage, into *[]json.RawMessage) bool {
	return len(list) == 0 || json.Unmarshal(list, into) == nil
}

// setList sets a list of a status, or removes it if it has no entries.
func setList(fields map[string]json.RawMessage, name string, list []json.RawMessage) {
	delete(fields, name)
	if encoded, err := json.Marshal(list); err == nil && len(list) > 0 {
		fields[name] = encoded
	}
}
