package inventory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// BenchmarkChange measures what one changed resource costs besides the requests: the index learns it, and the ledger tells the scope, among so many.
func BenchmarkChange(b *testing.B) {
	for _, resources := range []int{1_000, 10_000} {
		scopes, report := judgedScopes{}, sync.Report{Changed: map[aai.Key]sync.Object{}}
		for i := range resources {
			n := name("shop", fmt.Sprintf("scope-%04d", i%(resources/10)))
			if scopes[n] == nil {
				scopes[n] = judged()
			}
			m := member("shop", fmt.Sprintf("web-%05d", i), healthscope.Ready)
			scopes[n].Members = append(scopes[n].Members, placed(m)...)
			report.Changed[keyOf(m)] = sync.Object{State: sync.Synced}
		}
		index := filled(scopes, nil, nil, configv1alpha1.SelectScoped)
		index.take(tenant, nil)
		l := newLedger(options(), index.ownerOf)
		for n, j := range scopes {
			l.Report(n, j.Members, nil)
		}
		note(l, tenant, report, nil, false)
		changing := name("shop", "scope-0007")
		b.Run(fmt.Sprintf("%d resources", resources), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				members := slices.Clone(scopes[changing].Members)
				members[0].State = []healthscope.State{healthscope.Failed, healthscope.Ready}[i%2]
				scopes[changing] = judged(members...)
				index.scopeJudged(changing)
				n := index.take(tenant, nil)
				if len(n.Wishes) != 1 {
					b.Fatal(len(n.Wishes))
				}
				r := sync.Report{Changed: map[aai.Key]sync.Object{}}
				for key := range n.Wishes {
					r.Changed[key] = sync.Object{State: []sync.State{sync.Pending, sync.Synced}[i%2]}
				}
				note(l, tenant, r, nil, false)
			}
		})
	}
}
