package oam

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestJoinConvergesAfterEachStep checks that a scope has, after each step, the references by hand in their place and the references
// that any ApplicationConfiguration wants, and that the same step again changes nothing.
func TestJoinConvergesAfterEachStep(t *testing.T) {
	t.Parallel()
	of := func(apiVersion, kind, name string) reference {
		return reference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	all := []reference{of("apps/v1", "Deployment", "a"), of("apps/v1", "Deployment", "b"), of("apps/v1", "Deployment", "c"), of("core.oam.dev/v1alpha2", "ContainerizedWorkload", "a")}
	rapid.Check(t, func(t *rapid.T) {
		byHand := []reference{all[0], {APIVersion: "apps/v1", Kind: "Deployment", Name: "b", Cluster: "edge"}}
		s, wants := scopeState{references: slices.Clone(byHand)}, map[string][]reference{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"first", "second", "third"}).Draw(t, "name")
			wants[name] = rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID[reference]).Draw(t, "wanted")
			s, _ = s.join(name, wants[name])
			if _, changed := s.join(name, wants[name]); changed {
				t.Fatalf("the same step again changes %+v", s)
			}
			if !slices.Equal(s.references[:2], byHand) {
				t.Fatalf("the references by hand have become %+v", s.references)
			}
			var want []reference
			for _, wanted := range wants {
				for _, r := range wanted {
					want = appendNew(want, r)
				}
			}
			want = slices.DeleteFunc(want, func(r reference) bool { return r == all[0] })
			for _, r := range want {
				if !slices.Contains(s.references[2:], r) {
					t.Fatalf("%v is missing in %+v, wanted are %v", r, s.references, wants)
				}
			}
			if len(s.references) != 2+len(want) {
				t.Fatalf("%+v is too much, wanted are %v", s.references, wants)
			}
		}
	})
}
