package status

import (
	"encoding/json"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// lists are the lists of whole objects, as they came; the rest of it is empty.
	lists k8spluginv1alpha1.ResourceBundleStateStatus
	// count is how many objects the bundle says it has.
	count int
	// last is the last judgement of contents, which is used as long as it holds; nil before the first.
	last atomic.Pointer[cachedJudgement]
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
	decoded := &Bundle{cluster: cluster, count: int(b.Status.ResourceCount)}
	kept := decoded.lists.Lists()
	for name, list := range b.Status.Lists() {
		*kept[name] = *list
	}
	trimmed := *b
	bundle.Trim(&trimmed, user)
	decoded.contents = bundle.Read(cluster, &trimmed)
	return decoded
}

// objects returns the objects in the lists, without what may not be shown. What cannot be read is left out.
func (b *Bundle) objects() map[healthscope.Key]map[string]any {
	if b == nil {
		return nil
	}
	found := map[healthscope.Key]map[string]any{}
	for _, object := range bundle.Objects(&b.lists) {
		key := keyOf(b.cluster, object)
		if _, twice := found[key]; !twice {
			found[key] = redact(object)
		}
	}
	return found
}

// keyOf returns the key of an object.
func keyOf(cluster string, object map[string]any) healthscope.Key {
	u := unstructured.Unstructured{Object: object}
	return healthscope.Key{Cluster: cluster, Group: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
