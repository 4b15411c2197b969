package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestStoreReportsChanges checks that a store holds what a reflector stores, and reports each change after the first Replace once.
func TestStoreReportsChanges(t *testing.T) {
	t.Parallel()
	var changed []string
	s := NewStore(func(object any) string {
		if c, ok := object.(*corev1.ConfigMap); ok {
			return c.Data["color"]
		}
		return "unknown"
	}, func(a, b string) bool { return a == b }, func(name types.NamespacedName, was, is string) {
		changed = append(changed, fmt.Sprintf("%s:%s-%s", name.Name, was, is))
	})
	object := func(name, color string) any {
		transformed, err := s.Transformer()(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"color": color}})
		if err != nil {
			t.Fatal(err)
		}
		return transformed
	}
	for _, step := range []struct {
		what    string
		do      func() error
		changed string
		left    map[string]string
	}{
		{"all is read", func() error { return s.Replace([]any{object("a", "red"), object("b", "red")}, "1") }, "", map[string]string{"a": "red", "b": "red"}},
		{"one comes", func() error { return s.Add(object("c", "red")) }, "c:-red", map[string]string{"a": "red", "b": "red", "c": "red"}},
		{"one is written and stays the same", func() error { return s.Update(object("a", "red")) }, "", map[string]string{"a": "red", "b": "red", "c": "red"}},
		{"one changes", func() error { return s.Update(object("a", "blue")) }, "a:red-blue", map[string]string{"a": "blue", "b": "red", "c": "red"}},
		{"one goes", func() error { return s.Delete(object("b", "red")) }, "b:red-", map[string]string{"a": "blue", "c": "red"}},
		{"all is read again", func() error { return s.Replace([]any{object("a", "green"), object("d", "red")}, "2") }, "a:blue-green c:red- d:-red", map[string]string{"a": "green", "d": "red"}},
		{"what is not as expected is kept as that", func() error {
			return s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d"}})
		}, "d:red-unknown", map[string]string{"a": "green", "d": "unknown"}},
	} {
		changed = nil
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		slices.Sort(changed)
		if got := strings.Join(changed, " "); got != step.changed {
			t.Errorf("%s: %q have changed, want %q", step.what, got, step.changed)
		}
		left := map[string]string{}
		for name, color := range s.All() {
			left[name.Name] = color
		}
		if diff := cmp.Diff(step.left, left); diff != "" || !s.HasSynced() {
			t.Errorf("%s: -want +got:\n%s", step.what, diff)
		}
		red := s.In("shop", func(color string) bool { return color == "red" })
		if want := strings.Count(fmt.Sprint(step.left), ":red"); len(red) != want || len(s.In("other", func(string) bool { return true })) > 0 {
			t.Errorf("%s: %d of the namespace are red, want %d", step.what, len(red), want)
		}
	}
}
