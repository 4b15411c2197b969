package bundle

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// Equal reports whether two statuses are the same to a reader, so that nothing
// needs to be written. The order of JSON keys, null or an empty list instead of
// an absent value and fractions of a second make no difference. The order of lists
// does.
func Equal(a, b *k8spluginv1alpha1.ResourceBundleStateStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Ready != b.Ready || a.ResourceCount != b.ResourceCount || a.Truncated != b.Truncated ||
		!ptr.Equal(a.Summary, b.Summary) || !slices.EqualFunc(a.Resources, b.Resources, sameEntry) || !slices.Equal(a.Malformed, b.Malformed) {
		return false
	}
	others := b.Lists()
	for name, list := range a.Lists() {
		if !sameList(*list, *others[name]) {
			return false
		}
	}
	return true
}

// sameEntry reports whether two entries of resources are the same.
func sameEntry(a, b k8spluginv1alpha1.ResourceHealth) bool {
	texts := func(r k8spluginv1alpha1.ResourceHealth) [9]string {
		return [9]string{r.Group, r.Version, r.Kind, r.Namespace, r.Name, r.UID, r.State, r.Reason, r.Message}
	}
	flags := func(r k8spluginv1alpha1.ResourceHealth) [4]bool {
		return [4]bool{r.Serving, r.Suspended, r.Warning, r.Timed}
	}
	return texts(a) == texts(b) && flags(a) == flags(b) &&
		sameTime(a.Since, b.Since) && sameTime(a.ProgressedAt, b.ProgressedAt) && ptr.Equal(a.Progress, b.Progress) && ptr.Equal(a.Owner, b.Owner) &&
		maps.Equal(a.Labels, b.Labels) && ptr.Equal(a.Desired, b.Desired) && ptr.Equal(a.Available, b.Available) &&
		ptr.Equal(a.ProgressDeadlineSeconds, b.ProgressDeadlineSeconds)
}

// sameTime reports whether two times are the same second, which is the resolution of their JSON form.
func sameTime(a, b *metav1.Time) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() == b.IsZero()
	}
	return a.Unix() == b.Unix()
}

// sameList reports whether two lists of whole objects are the same.
func sameList(a, b k8spluginv1alpha1.RawList) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeNumbers(a)
	y, errY := decodeNumbers(b)
	return errX == nil && errY == nil && sameValue(x, y)
}

// decodeNumbers decodes JSON and keeps numbers as they are written, because floats confuse large ones. Nothing, null and an empty list all decode to nil.
func decodeNumbers(list k8spluginv1alpha1.RawList) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(list))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if items, ok := value.([]any); ok && len(items) == 0 {
		return nil, nil
	}
	return value, nil
}

// sameValue reports whether two JSON values are the same. In objects, null counts as absent.
func sameValue(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && hasFieldsOf(x, y) && hasFieldsOf(y, x)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameValue)
	default:
		return a == b
	}
}

// hasFieldsOf reports whether a has all fields of b, with the same values. A field that is absent reads as nil, which is what null decodes to.
func hasFieldsOf(a, b map[string]any) bool {
	for name, value := range b {
		if !sameValue(a[name], value) {
			return false
		}
	}
	return true
}
