package fleet

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// LabelSet is a comparable set of labels, which selectors can match without conversion. It is one string, sorted by
// keys, in which each key and each value follows its length. It takes a third of the memory of a map, and does not rely
// on valid labels: other clusters are not trusted. It implements labels.Labels.
type LabelSet string

// NewLabelSet returns labels as a LabelSet.
func NewLabelSet(set map[string]string) LabelSet {
	var packed []byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		for _, text := range []string{key, set[key]} {
			packed = append(binary.AppendUvarint(packed, uint64(len(text))), text...)
		}
	}
	return LabelSet(packed)
}

// All returns the keys, sorted, with their values.
func (s LabelSet) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for rest := string(s); rest != ""; {
			var key, value string
			key, rest = cutText(rest)
			value, rest = cutText(rest)
			if !yield(key, value) {
				return
			}
		}
	}
}

// cutText returns the first string of a packed sequence, and the rest.
func cutText(packed string) (text, rest string) {
	// A length takes at most five bytes: no object has more than 4 GiB.
	n, size := binary.Uvarint([]byte(packed[:min(len(packed), binary.MaxVarintLen32)]))
	end := size + int(n)
	return packed[size:end], packed[end:]
}

// Map returns the labels.
func (s LabelSet) Map() map[string]string { return maps.Collect(s.All()) }

// Lookup implements labels.Labels.
func (s LabelSet) Lookup(label string) (value string, exists bool) {
	for key, value := range s.All() {
		if key == label {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (s LabelSet) Has(label string) bool {
	_, exists := s.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (s LabelSet) Get(label string) string {
	value, _ := s.Lookup(label)
	return value
}

var _ labels.Labels = LabelSet("")

// intern returns the canonical copy of a string, so that equal strings share memory.
func intern[S ~string](s S) S { return unique.Make(s).Value() }
