package fleet

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLabelSetRoundTrip: a LabelSet holds any labels, also those that an API server would reject. It is equal for equal labels,
// and has the same values.
func TestLabelSetRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels")
		packed := NewLabelSet(set)
		if !maps.Equal(set, packed.Map()) || packed != NewLabelSet(maps.Clone(set)) {
			t.Fatalf("%q became %q", set, packed.Map())
		}
		key := rapid.OneOf(rapid.SampledFrom(append(slices.Sorted(maps.Keys(set)), "")), rapid.String()).Draw(t, "key")
		value, exists := packed.Lookup(key)
		if want, there := set[key]; value != want || exists != there || packed.Has(key) != there || packed.Get(key) != want {
			t.Fatalf("label %q is %q, %t", key, value, exists)
		}
	})
}
