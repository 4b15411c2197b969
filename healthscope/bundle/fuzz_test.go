package bundle_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// FuzzRead asserts that any status can be read, that every result has a state, and that the contents do not change with Trim.
func FuzzRead(f *testing.F) {
	for _, text := range []string{oldBundle, newBundle, `{summary: {state: Ready}, resources: [{kind: Pod, name: a, state: Ready, since: null, owner: {kind: Job, name: j}}]}`, `{resources: 5, podStatuses: [[]]}`} {
		f.Add(toJSON(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &k8spluginv1alpha1.ResourceBundleState{}
		if json.Unmarshal(data, &b.Status) != nil {
			return
		}
		contents := bundle.Read("edge", b)
		for _, r := range contents.Results {
			if !r.State.Valid() || r.Kind == "" || r.Name == "" {
				t.Errorf("result %+v", r)
			}
		}
		bundle.Trim(b, nil)
		if diff := cmp.Diff(contents, bundle.Read("edge", b), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("contents before and after Trim (-before +after):\n%s", diff)
		}
	})
}

// FuzzBuild asserts that a status is built from any object, that it survives a round trip, and that it does not depend on
// whether the object was redacted before.
func FuzzBuild(f *testing.F) {
	for _, text := range secretive {
		f.Add(toJSON(text), 100000)
	}
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","labels":5,"annotations":[],"ownerReferences":{}},"spec":{"env":[[{"value":1}]]}}`), 300)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		var object, stripped map[string]any
		if k8sjson.Unmarshal(data, &object) != nil || k8sjson.Unmarshal(data, &stripped) != nil {
			return
		}
		opts := bundle.Options{HardLimit: max(limit, 1), ListBudget: max(limit, 1)}
		first := bundle.Build([]*unstructured.Unstructured{{Object: object}}, nil, noon, opts)
		bundle.Redact(&unstructured.Unstructured{Object: stripped})
		second := bundle.Build([]*unstructured.Unstructured{{Object: stripped}}, nil, noon, opts)
		if !bundle.Equal(&first, &second) {
			t.Errorf("whole:\n%s\nstripped:\n%s", encode(first), encode(second))
		}
		stored := roundTrip(first)
		if !bundle.Equal(&first, &stored) {
			t.Errorf("a round trip makes\n%s\ninto\n%s", encode(first), encode(stored))
		}
	})
}
