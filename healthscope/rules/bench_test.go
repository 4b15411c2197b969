package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// BenchmarkEvaluate judges all objects of testdata in turn, with the rules and with kstatus. The metric median-ns is the median
// of the objects' mean times. With -benchmem, B/op and allocs/op are those of all objects together.
func BenchmarkEvaluate(b *testing.B) {
	objects := readObjects(b)
	b.Run("rules", func(b *testing.B) {
		benchmark(b, objects, func(tc objectCase) { rules.Evaluate(tc.object, rules.Options{}) })
	})
	b.Run("kstatus", func(b *testing.B) {
		judged := 0
		all := make([]func(), 0, len(objects))
		for _, tc := range objects {
			if _, err := status.Compute(tc.object); err == nil {
				judged++
			}
			all = append(all, func() { _, _ = status.Compute(tc.object) })
		}
		benchmark(b, all, func(compute func()) { compute() })
		b.ReportMetric(float64(len(objects)-judged), "errors")
	})
}

// benchmark measures the time of work for each item, and for all of them.
func benchmark[T any](b *testing.B, items []T, work func(T)) {
	b.ReportAllocs()
	spent, loops := make([]time.Duration, len(items)), 0
	for b.Loop() {
		loops++
		for i, item := range items {
			start := time.Now()
			work(item)
			spent[i] += time.Since(start)
		}
	}
	slices.Sort(spent)
	b.ReportMetric(float64(spent[len(spent)/2].Nanoseconds())/float64(loops), "median-ns")
	b.ReportMetric(float64(len(items)), "objects")
}
