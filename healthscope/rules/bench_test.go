package rules_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// BenchmarkEvaluate measures each family of kinds, with kstatus beside it.
func BenchmarkEvaluate(b *testing.B) {
	for name, text := range samples {
		object := parse(b, text)
		b.Run(name+"/healthscope", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if rules.Evaluate(object).State == "" {
					b.Fatal("no state")
				}
			}
		})
		b.Run(name+"/kstatus", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := status.Compute(object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
