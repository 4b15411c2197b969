package fleet

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"
)

// TestKindsAreWatchedWhileWanted: for any order of calls, each kind is watched as long as a scope wants it.
func TestKindsAreWatchedWhileWanted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := NewObjects(nil, nil) // Not started, so that it watches nothing.
		for _, cluster := range []string{"local", "edge"} {
			o.ensureCluster(cluster).clients.Store(&clusterClients{client: struct{ dynamic.Interface }{}})
		}
		wants := map[string]map[Kind]struct{}{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			kinds := map[Kind]struct{}{}
			for _, kind := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"Deployment", "StatefulSet", "DaemonSet"}), rapid.ID[string]).Draw(t, "kinds") {
				cluster := rapid.SampledFrom([]string{"local", "edge"}).Draw(t, "cluster")
				kinds[Kind{cluster, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}}] = struct{}{}
			}
			for kind := range kinds { // As if it had been started.
				if at := (informerKey{Kind: kind}); o.kinds[at] == nil {
					o.kinds[at] = &kindInformer{stop: func() {}}
				}
			}
			wants[who] = kinds
			o.Want(types.NamespacedName{Name: who}, kinds)
			all := map[Kind]struct{}{}
			for _, set := range wants {
				for kind := range set {
					all[kind] = struct{}{}
				}
			}
			if len(o.kinds) != len(all) {
				t.Fatalf("%d kinds are watched, %d wanted", len(o.kinds), len(all))
			}
			for kind := range all {
				if o.kinds[informerKey{Kind: kind}] == nil {
					t.Fatalf("%v is not watched", kind)
				}
			}
		}
		for _, who := range []string{"a", "b", "c"} {
			o.Want(types.NamespacedName{Name: who}, nil)
		}
		if len(o.kinds)+len(o.wantCounts)+len(o.wanted) != 0 {
			t.Fatalf("something is left: %v %v %v", o.kinds, o.wantCounts, o.wanted)
		}
	})
}
