package appcontext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// large creates a context of 5 apps in 50 clusters with 15 resources each, and bundles of 8 KB.
func large(b *testing.B, store *appcontext.Store) string {
	b.Helper()
	ac, h := newContext(b, store)
	bundle := `{"podStatuses":["` + strings.Repeat("x", 8<<10) + `"]}`
	for n := range 5 {
		app := must(ac.AddApp(b.Context(), h, fmt.Sprintf("app%d", n)))(b)
		for c := range 50 {
			cluster := must(ac.AddCluster(b.Context(), app, fmt.Sprintf("provider+edge%02d", c)))(b)
			values := map[string]any{"status": bundle}
			for r := range 15 {
				key := fmt.Sprintf("resource/object%02d+Deployment", r)
				values[key], values[key+"/status"] = deployment("object"), state{"Applied"}
			}
			noError(b, set(b.Context(), store, cluster, values))
		}
	}
	return ac.ID()
}

// count reads the state of every resource.
func count(b *testing.B, s *appcontext.Snapshot) {
	b.Helper()
	n := 0
	for _, app := range s.Apps() {
		for _, cluster := range app.Clusters() {
			for _, resource := range cluster.Resources() {
				if status, err := resource.Status(); err == nil && status == appcontext.ResourceApplied {
					n++
				}
			}
		}
	}
	if n != 5*50*15 {
		b.Fatalf("%d resources", n)
	}
}

func BenchmarkLargeContext(b *testing.B) {
	store := open(b, appcontext.Options{})
	id := large(b, store)
	cache := runCache(b, store, appcontext.CacheOptions{})
	snapshot := must(store.Snapshot(b.Context(), id))(b)
	b.Run("Store.Snapshot", func(b *testing.B) {
		for b.Loop() {
			must(store.Snapshot(b.Context(), id))(b)
		}
	})
	b.Run("Cache.Snapshot", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, _, err := cache.Snapshot(b.Context(), id); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("every resource's state", func(b *testing.B) {
		for b.Loop() {
			count(b, snapshot)
		}
	})
}
