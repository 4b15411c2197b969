package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	k8sjson "k8s.io/apimachinery/pkg/util/json"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Bundle is the status of a ResourceBundleState, decoded: what it says of its objects, and the objects. It never changes,
// and is safe for concurrent use.
type Bundle struct {
	cluster  string
	contents bundle.Contents
	// lists are the lists of whole objects, as they came.
	lists map[string]k8spluginv1alpha1.RawList
	// count is how many objects the bundle says it has.
	count int
	// last is the last judgement of contents, which is used as long as it holds; nil before the first.
	last atomic.Pointer[judged]
}

// DecodeBundle decodes the status of a ResourceBundleState of a cluster from JSON, as EMCO's rsync and the recorder save
// it. The lists of other monitors are judged by the user's rules, which may be nil, besides the program's own. It never
// fails: what cannot be read is a bundle that says so, of which nothing is known.
func DecodeBundle(cluster, text string, user rules.UserRules) *Bundle {
	var b k8spluginv1alpha1.ResourceBundleState
	if json.Unmarshal([]byte(text), &b.Status) != nil {
		return &Bundle{cluster: cluster, contents: bundle.Contents{Observed: true, Malformed: []string{"status"}}}
	}
	return NewBundle(cluster, &b, user)
}

// NewBundle is DecodeBundle for a ResourceBundleState that was read from its cluster, whole. It does not change b.
func NewBundle(cluster string, b *k8spluginv1alpha1.ResourceBundleState, user rules.UserRules) *Bundle {
	decoded := &Bundle{cluster: cluster, lists: map[string]k8spluginv1alpha1.RawList{}, count: int(b.Status.ResourceCount)}
	for name, list := range b.Status.Lists() {
		if len(*list) > 0 {
			decoded.lists[name] = *list
		}
	}
	slim := *b
	bundle.Slim(&slim, user)
	decoded.contents = bundle.Read(cluster, &slim)
	return decoded
}

// listed are the kinds of the objects in the lists that hold one kind only; entries may leave it out.
var listed = map[string]header{
	"podStatuses":         {APIVersion: "v1", Kind: "Pod"},
	"serviceStatuses":     {APIVersion: "v1", Kind: "Service"},
	"configMapStatuses":   {APIVersion: "v1", Kind: "ConfigMap"},
	"deploymentStatuses":  {APIVersion: "apps/v1", Kind: "Deployment"},
	"secretStatuses":      {APIVersion: "v1", Kind: "Secret"},
	"daemonSetStatuses":   {APIVersion: "apps/v1", Kind: "DaemonSet"},
	"ingressStatuses":     {APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
	"jobStatuses":         {APIVersion: "batch/v1", Kind: "Job"},
	"statefulSetStatuses": {APIVersion: "apps/v1", Kind: "StatefulSet"},
	"csrStatuses":         {APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
}

// objects returns the objects in the lists, without what may not be shown. What cannot be read is left out.
func (b *Bundle) objects() map[healthscope.Key]map[string]any {
	if b == nil {
		return nil
	}
	found := map[healthscope.Key]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(b.lists)) {
		var entries []json.RawMessage
		if json.Unmarshal(b.lists[name], &entries) != nil {
			continue
		}
		for _, entry := range entries {
			object := objectIn(entry, listed[name])
			key, ok := keyOf(b.cluster, object)
			if _, twice := found[key]; ok && !twice {
				found[key] = strip(object)
			}
		}
	}
	return found
}

// objectIn returns the object in an entry of a list of one kind, or for a zero kind of the list of all others, where it is
// inside the entry, in base64.
func objectIn(entry json.RawMessage, of header) map[string]any {
	if of.Kind == "" {
		var wrapper struct {
			Group     string `json:"group"`
			Version   string `json:"version"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Res       []byte `json:"res"`
		}
		if json.Unmarshal(entry, &wrapper) != nil {
			return nil
		}
		of.APIVersion, of.Kind = strings.TrimPrefix(wrapper.Group+"/"+wrapper.Version, "/"), wrapper.Kind
		return named(decodeObject(wrapper.Res, of), wrapper.Namespace, wrapper.Name)
	}
	return decodeObject(entry, of)
}

// decodeObject decodes an object, and adds what it is where it does not say so itself.
func decodeObject(data []byte, of header) map[string]any {
	var object map[string]any
	if k8sjson.Unmarshal(data, &object) != nil || object == nil {
		return nil
	}
	if object["apiVersion"] == nil {
		object["apiVersion"] = of.APIVersion
	}
	if object["kind"] == nil {
		object["kind"] = of.Kind
	}
	return object
}

// named adds to an object the name that its wrapper has, where it has none itself.
func named(object map[string]any, namespace, name string) map[string]any {
	if object == nil {
		return nil
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	if metadata["name"] == nil {
		metadata["name"] = name
	}
	if metadata["namespace"] == nil && namespace != "" {
		metadata["namespace"] = namespace
	}
	return object
}

// keyOf returns the key of an object, and whether it has one.
func keyOf(cluster string, object map[string]any) (healthscope.Key, bool) {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	key := healthscope.Key{Cluster: cluster}
	key.Kind, _ = object["kind"].(string)
	key.Name, _ = metadata["name"].(string)
	key.Namespace, _ = metadata["namespace"].(string)
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		key.Group = group
	}
	return key, key.Kind != "" && key.Name != ""
}
