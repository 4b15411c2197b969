package fleet

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// benchmarkSizes are numbers of bundles, or of scopes. The cost of one change must not grow with them.
var benchmarkSizes = []int{10, 1000}

// viewOfBundles returns a view of n bundles, each with a label of its own.
func viewOfBundles(n int) *View {
	v := openView("local")
	for i := range n {
		key := keyOf("local", fmt.Sprintf("app-%d", i))
		v.put(key, ready(key, map[string]string{"scope": fmt.Sprint(i), "tier": "edge"}))
	}
	return v
}

// BenchmarkSelect measures how a scope finds its one bundle among many bundles of its namespace.
func BenchmarkSelect(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("%d bundles", n), func(b *testing.B) {
			v := viewOfBundles(n)
			selector := labels.SelectorFromSet(labels.Set{"scope": "7"})
			b.ReportAllocs()
			for b.Loop() {
				if found := v.Select("shop", selector); len(found) != 1 {
					b.Fatalf("%d bundles", len(found))
				}
			}
		})
	}
}

// BenchmarkPut measures a change of one bundle among many.
func BenchmarkPut(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("%d bundles", n), func(b *testing.B) {
			v := viewOfBundles(n)
			key := keyOf("local", "app-7")
			b.ReportAllocs()
			for b.Loop() {
				v.put(key, ready(key, map[string]string{"scope": "7", "tier": "edge"}))
			}
		})
	}
}

// BenchmarkWant measures a call of Want for one scope beside many scopes that want the same kinds.
func BenchmarkWant(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("%d scopes", n), func(b *testing.B) {
			o := NewObjects(nil, nil)
			kinds := map[Kind]struct{}{}
			for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
				kinds[Kind{"local", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}}] = struct{}{}
			}
			for i := range n {
				o.Want(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, kinds)
			}
			who := types.NamespacedName{Namespace: "shop", Name: "7"}
			b.ReportAllocs()
			for b.Loop() {
				o.Want(who, kinds)
			}
		})
	}
}
