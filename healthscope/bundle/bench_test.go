package bundle_test

import (
	"fmt"
	"testing"
	"time"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// benchmarkSizes are the numbers of pods in an application.
var benchmarkSizes = []int{10, 200, 2000}

// BenchmarkBuild measures a bundle with a previous status, as at every change.
func BenchmarkBuild(b *testing.B) {
	for _, pods := range benchmarkSizes {
		b.Run(fmt.Sprintf("%d pods", pods), func(b *testing.B) {
			objects := crowd(pods)
			previous := bundle.Build(objects, nil, noon, bundle.Options{})
			b.ReportAllocs()
			for b.Loop() {
				if bundle.Build(objects, &previous, noon.Add(time.Minute), bundle.Options{}).Summary == nil {
					b.Fatal("no summary")
				}
			}
			b.ReportMetric(float64(len(encode(previous))), "status-bytes")
		})
	}
}

// BenchmarkEqual compares a status with its copy from an API server.
func BenchmarkEqual(b *testing.B) {
	for _, pods := range benchmarkSizes {
		b.Run(fmt.Sprintf("%d pods", pods), func(b *testing.B) {
			status := bundle.Build(crowd(pods), nil, noon, bundle.Options{})
			stored := roundTrip(status)
			b.ReportAllocs()
			for b.Loop() {
				if !bundle.Equal(&status, &stored) {
					b.Fatal("not equal")
				}
			}
		})
	}
}

// BenchmarkTrim measures what a hub does with each bundle that it receives: one of ours, and one of another monitor.
func BenchmarkTrim(b *testing.B) {
	for _, pods := range benchmarkSizes {
		status := bundle.Build(crowd(pods), nil, noon, bundle.Options{ListBudget: 8 << 20, HardLimit: 16 << 20})
		foreign := status.DeepCopy()
		foreign.Summary, foreign.Resources = nil, nil
		for name, s := range map[string]*k8spluginv1alpha1.ResourceBundleStateStatus{"ours": &status, "other": foreign} {
			b.Run(fmt.Sprintf("%d pods/%s", pods, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					trimmed := &k8spluginv1alpha1.ResourceBundleState{Status: *s}
					bundle.Trim(trimmed, nil)
					if len(trimmed.Status.Resources) != pods+3 {
						b.Fatalf("%d resources", len(trimmed.Status.Resources))
					}
				}
			})
		}
	}
}
