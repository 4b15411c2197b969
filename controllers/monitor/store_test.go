package monitor

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

const testKey = "emco/deployment-id"

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// object returns a labelled ConfigMap. Its uid is its namespace and name.
func object(namespace, name, label, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID(namespace + "/" + name))
	o.SetResourceVersion(version)
	o.SetLabels(map[string]string{testKey: label})
	return o
}

// observed returns a store, and the keys that it reports as changed.
func observed() (s *store, touched *sets.Set[selectorKey]) {
	s = newStore(configMap, testKey)
	touched = &sets.Set[selectorKey]{}
	*touched = sets.New[selectorKey]()
	s.changed = func(c sets.Set[selectorKey]) { *touched = touched.Union(c) }
	return s, touched
}

func inNamespace(label string) selectorKey {
	return selectorKey{namespace: "ns", key: testKey, value: label}
}

// versions returns the members of a selector key as name=resourceVersion.
func versions(s *store, c selectorKey) sets.Set[string] {
	found := sets.New[string]()
	for _, o := range s.appendMembers(nil, c) {
		found.Insert(o.Name + "=" + o.ResourceVersion)
	}
	return found
}

func TestStoreChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		change      func(*store) error
		wantTouched []selectorKey
		wantMembers map[string][]string
	}{
		"Add": {
			reason:      "A new object touches the key of its label.",
			change:      func(s *store) error { return s.Add(object("ns", "c", "two", "9")) },
			wantTouched: []selectorKey{inNamespace("two")},
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}, "two": {"c=9"}},
		},
		"Update": {
			reason:      "A newer version replaces the older one.",
			change:      func(s *store) error { return s.Update(object("ns", "a", "one", "9")) },
			wantTouched: []selectorKey{inNamespace("one")},
			wantMembers: map[string][]string{"one": {"a=9", "b=1"}},
		},
		"SameVersion": {
			reason:      "The same version again changes nothing and wakes nobody.",
			change:      func(s *store) error { return s.Update(object("ns", "a", "one", "1")) },
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}},
		},
		"Recreated": {
			reason: "An object of the same name and version is another one.",
			change: func(s *store) error {
				o := object("ns", "a", "one", "1")
				o.SetUID("another")
				return s.Add(o)
			},
			wantTouched: []selectorKey{inNamespace("one")},
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}},
		},
		"LabelMoves": {
			reason:      "An object whose label changes leaves one bundle for another: both are touched.",
			change:      func(s *store) error { return s.Update(object("ns", "a", "two", "9")) },
			wantTouched: []selectorKey{inNamespace("one"), inNamespace("two")},
			wantMembers: map[string][]string{"one": {"b=1"}, "two": {"a=9"}},
		},
		"OtherNamespace": {
			reason:      "Objects of the same name and label in two namespaces are two objects of two bundles.",
			change:      func(s *store) error { return s.Add(object("other", "a", "one", "9")) },
			wantTouched: []selectorKey{{namespace: "other", key: testKey, value: "one"}},
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}},
		},
		"Delete": {
			reason:      "A deleted object leaves.",
			change:      func(s *store) error { return s.Delete(object("ns", "a", "one", "9")) },
			wantTouched: []selectorKey{inNamespace("one")},
			wantMembers: map[string][]string{"one": {"b=1"}},
		},
		"DeleteUnknown": {
			reason:      "The end of an object nobody knew is no news.",
			change:      func(s *store) error { return s.Delete(object("ns", "z", "one", "9")) },
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}},
		},
		"Replace": {
			reason: "What is missing in a list has been deleted meanwhile; what is the same touches nothing.",
			change: func(s *store) error {
				return s.Replace([]any{object("ns", "b", "one", "1"), object("ns", "d", "three", "1")}, "")
			},
			wantTouched: []selectorKey{inNamespace("one"), inNamespace("three")},
			wantMembers: map[string][]string{"one": {"b=1"}, "three": {"d=1"}},
		},
		"ReplaceWithTheSame": {
			reason: "A list after a broken watch that finds nothing new wakes nobody.",
			change: func(s *store) error {
				return s.Replace([]any{object("ns", "b", "one", "1"), object("ns", "a", "one", "1")}, "")
			},
			wantMembers: map[string][]string{"one": {"a=1", "b=1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, touched := observed()
			if err := s.Replace([]any{object("ns", "a", "one", "1"), object("ns", "b", "one", "1")}, ""); err != nil {
				t.Fatalf("Replace: %v", err)
			}
			*touched = sets.New[selectorKey]()
			if err := tc.change(s); err != nil {
				t.Fatalf("change: %v", err)
			}
			if !touched.Equal(sets.New(tc.wantTouched...)) {
				t.Errorf("%s touched %v, want %v", tc.reason, touched.UnsortedList(), tc.wantTouched)
			}
			for _, label := range []string{"one", "two", "three"} {
				if got, want := versions(s, inNamespace(label)), sets.New(tc.wantMembers[label]...); !got.Equal(want) {
					t.Errorf("%s members of %q are %v, want %v", tc.reason, label, got.UnsortedList(), want.UnsortedList())
				}
			}
		})
	}
}

func TestStoreRejectsOtherTypes(t *testing.T) {
	t.Parallel()
	s, _ := observed()
	for name, err := range map[string]error{
		"Add":     s.Add(&corev1.Pod{}),
		"Update":  s.Update("pod"),
		"Delete":  s.Delete(nil),
		"Replace": s.Replace([]any{&corev1.Pod{}}, ""),
	} {
		if err == nil {
			t.Errorf("%s of something that is no unstructured object succeeded", name)
		}
	}
}

func TestStoreRedactsObjects(t *testing.T) {
	t.Parallel()
	secretive := func() *unstructured.Unstructured {
		o := object("ns", "a", "one", "1")
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "canary"})
		o.Object["data"] = map[string]any{"password": "canary"}
		return o
	}
	ways := map[string]func(*store) error{
		"Add":     func(s *store) error { return s.Add(secretive()) },
		"Update":  func(s *store) error { return s.Update(secretive()) },
		"Replace": func(s *store) error { return s.Replace([]any{secretive()}, "") },
		"Transformer": func(s *store) error {
			o, err := s.Transformer()(secretive())
			if err != nil {
				return err
			}
			return s.Add(o)
		},
	}
	for name, put := range ways {
		s, _ := observed()
		if err := put(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		members := s.appendMembers(nil, inNamespace("one"))
		if len(members) != 1 {
			t.Fatalf("%s: %d members, want 1", name, len(members))
		}
		text, err := inflate(members[0].text)
		if err != nil || bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s: the store holds what it must not: %s, %v", name, text, err)
		}
	}
}

// TestStoreAgreesWithModel compares the store with a plain model after a random history. It checks that the store has reported
// each difference that a reader can see.
func TestStoreAgreesWithModel(t *testing.T) {
	t.Parallel()
	labels := []string{"one", "two"}
	rapid.Check(t, func(t *rapid.T) {
		s, touched := observed()
		model := map[string]*unstructured.Unstructured{}
		version := 0
		draw := func() *unstructured.Unstructured {
			version++
			return object("ns", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), rapid.SampledFrom(labels).Draw(t, "label"), fmt.Sprint(version))
		}
		see := func() map[string]sets.Set[string] {
			seen := map[string]sets.Set[string]{}
			for _, label := range labels {
				seen[label] = versions(s, inNamespace(label))
			}
			return seen
		}
		steps := map[string]func(){
			"put": func() {
				o := draw()
				model[o.GetName()] = o
				_ = s.Update(o.DeepCopy())
			},
			"delete": func() {
				o := draw()
				delete(model, o.GetName())
				_ = s.Delete(o)
			},
			"replace": func() {
				kept := map[string]*unstructured.Unstructured{}
				var list []any
				for range rapid.IntRange(0, 3).Draw(t, "size") {
					o := draw()
					if known := model[o.GetName()]; known != nil && rapid.Bool().Draw(t, "unchanged") {
						o = known.DeepCopy()
					}
					kept[o.GetName()] = o
				}
				for _, o := range kept {
					list = append(list, o.DeepCopy())
				}
				model = kept
				_ = s.Replace(list, "")
			},
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			before := see()
			*touched = sets.New[selectorKey]()
			steps[rapid.SampledFrom([]string{"put", "delete", "replace"}).Draw(t, "step")]()
			want := map[string]sets.Set[string]{"one": {}, "two": {}}
			for o := range maps.Values(model) {
				want[o.GetLabels()[testKey]].Insert(o.GetName() + "=" + o.GetResourceVersion())
			}
			after := see()
			if diff := cmp.Diff(want, after); diff != "" {
				t.Fatalf("store differs from the model (-want +got):\n%s", diff)
			}
			for _, label := range labels {
				if changed := !before[label].Equal(after[label]); changed != touched.Has(inNamespace(label)) {
					t.Fatalf("members of %q changed: %t, announced: %t", label, changed, !changed)
				}
			}
		}
	})
}
