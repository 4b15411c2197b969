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

// Bundle is the decoded status of a ResourceBundleState: the results for its objects, and the objects. It is immutable and safe
// for concurrent use.
type Bundle struct {
	cluster  string
	contents bundle.Contents
	// lists holds the lists of whole objects, unchanged. Its other fields are empty.
	lists k8spluginv1alpha1.ResourceBundleStateStatus
	// count is the number of objects that the bundle reports.
	count int
	// last is the last judgement of contents, which is reused while it is valid; nil before the first.
	last atomic.Pointer[cachedJudgement]
}

// DecodeBundle decodes the status of a ResourceBundleState of a cluster from JSON, as EMCO's rsync and the recorder save it. It
// judges the lists of other monitors by the built-in rules and by the user's rules, which may be nil. It never fails: for JSON
// that cannot be read, it returns a bundle that is malformed and has no objects.
func DecodeBundle(cluster, text string, user rules.UserRules) *Bundle {
	var b k8spluginv1alpha1.ResourceBundleState
	if json.Unmarshal([]byte(text), &b.Status) != nil {
		return &Bundle{cluster: cluster, contents: bundle.Contents{Observed: true, Malformed: []string{"status"}}}
	}
	return NewBundle(cluster, &b, user)
}

// NewBundle is like DecodeBundle, for a whole ResourceBundleState that was read from its cluster. It does not change b.
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

// objects returns the redacted objects in the lists. It omits objects that cannot be read.
func (b *Bundle) objects() map[healthscope.Key]map[string]any {
	if b == nil {
		return nil
	}
	found := map[healthscope.Key]map[string]any{}
	for _, object := range bundle.Objects(&b.lists) {
		key := keyOf(b.cluster, object)
		if _, twice := found[key]; !twice { // The first one is also the one that is judged.
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
