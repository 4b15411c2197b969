package inventory

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// BenchmarkPass measures what a pass costs besides the requests: gathering what
// 200 scopes have, and telling the scopes of an outcome in which one resource is new.
func BenchmarkPass(b *testing.B) {
	for _, resources := range []int{1_000, 10_000} {
		scopes := judgedScopes{}
		objects := map[aai.Key]sync.Object{}
		for i := range resources {
			n := name("shop", fmt.Sprintf("scope-%03d", i%200))
			if scopes[n] == nil {
				scopes[n] = judged()
			}
			m := member("shop", fmt.Sprintf("web-%05d", i), healthscope.Ready)
			scopes[n].Members = append(scopes[n].Members, placed(m)...)
			objects[mapping.Map(mapping.Resource{Member: m}, options()).Key] = sync.Object{State: sync.Synced}
		}
		g := newGatherer(scopes, nil, nil, configv1alpha1.SelectScoped)
		b.Run(fmt.Sprintf("%d resources/gather", resources), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w, err := g.gather(b.Context(), tenant); err != nil || len(w.documents) != resources {
					b.Fatal(len(w.documents), err)
				}
			}
		})
		l := newLedger(options(), scopes)
		l.Subscribe(func(types.NamespacedName) {})
		for n, j := range scopes {
			l.Report(n, j.Members)
		}
		for _, c := range []struct {
			name    string
			changes bool
		}{{"unchanged", false}, {"changed", true}} {
			b.Run(fmt.Sprintf("%d resources/%s", resources, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					o := outcome{objects: maps.Clone(objects)}
					if c.changes {
						o.failed = i
					}
					l.put(tenant, o)
				}
			})
		}
	}
}
