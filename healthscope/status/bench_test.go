package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// The size of the context in the benchmarks, and of each saved bundle.
const (
	benchApps, benchClusters, benchResources = 5, 50, 15
	benchBundleBytes                         = 8 << 10
)

// big returns the input for a context of the benchmarks' size, with the reports of a hub that sees all clusters.
func big(tb testing.TB) status.Input {
	tb.Helper()
	k := newKeys("8754802609091293874", "Instantiated").order("app-0", "app-1", "app-2", "app-3", "app-4")
	body := "spec:\n  template:\n    spec:\n      containers:\n" + strings.Repeat("      - {name: web, image: \"example.org/web:1\"}\n", 10)
	reports := map[status.AppInCluster]status.Report{}
	for a := range benchApps {
		for c := range benchClusters {
			app, cluster := fmt.Sprintf("app-%d", a), fmt.Sprintf("provider+edge%02d", c)
			var resources []string
			var results []healthscope.Result
			for r := range benchResources {
				name := fmt.Sprintf("workload-%02d", r)
				resources = append(resources, name+"+Deployment", object("apps/v1", "Deployment", name)+body, "Applied")
				results = append(results, member(cluster, "apps", "Deployment", name, healthscope.Ready).Result)
			}
			k.cluster(app, cluster, resources...).bundle(app, cluster, padded(resources))
			reports[status.AppInCluster{App: app, Cluster: cluster}] = seen(healthscope.Judge(results, healthscope.DefaultPolicy(), noon).Members...)
		}
	}
	in := k.input(tb)
	in.Reports = reports
	return in
}

// padded returns the status of a bundle with Deployments, of the benchmarks' size.
func padded(resources []string) string {
	var entries []any
	for i := 0; i < len(resources); i += 3 {
		name, _, _ := strings.Cut(resources[i], "+")
		entries = append(entries, map[string]any{
			"kind": "Deployment", "apiVersion": "apps/v1",
			"metadata": map[string]any{"name": name, "namespace": "store", "annotations": map[string]any{"note": strings.Repeat("x", benchBundleBytes/benchResources-260)}},
			"spec":     map[string]any{"replicas": 1},
			"status":   map[string]any{"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
		})
	}
	return marshal(map[string]any{"ready": false, "resourceCount": 0, "deploymentStatuses": entries})
}

// BenchmarkNew builds and encodes documents of 5 apps × 50 clusters × 15 resources from decoded contexts.
func BenchmarkNew(b *testing.B) {
	in := big(b)
	for _, raw := range []string{
		"output=summary", "output=summary&type=cluster", "output=summary&health=true", "output=all", "output=all&type=cluster", "output=small",
		"output=all&cluster=provider%2Bedge07", "output=detail",
	} {
		q := query(b, raw)
		b.Run(raw, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := wire(b, status.New(in, q)); got == "" {
					b.Fatal("no document")
				}
			}
		})
	}
}

// BenchmarkDecode decodes the contexts: for the first time, and again after one state has changed.
func BenchmarkDecode(b *testing.B) {
	in := big(b)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			status.Decode(in.View, nil)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			status.Decode(in.View, in.Contents)
		}
	})
}

// BenchmarkDecodeBundle decodes one saved bundle of 8 KB.
func BenchmarkDecodeBundle(b *testing.B) {
	var resources []string
	for r := range benchResources {
		resources = append(resources, fmt.Sprintf("workload-%02d+Deployment", r), "", "")
	}
	text := padded(resources)
	b.ReportAllocs()
	for b.Loop() {
		if status.DecodeBundle("provider+edge00", text, nil) == nil {
			b.Fatal("no bundle")
		}
	}
}
