package healthscope_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// installation returns n results like those of a bundle, sorted by key. Four of five are pods, which Deployments own through a
// ReplicaSet. One workload in ten has a crashing pod.
func installation(n int) []healthscope.Result {
	var all []healthscope.Result
	for w := 0; len(all) < n; w++ {
		name := fmt.Sprintf("shop-%04d", w)
		state := healthscope.Ready
		if w%10 == 0 {
			state = healthscope.Pending
		}
		all = append(all,
			deployment(name, state, since(ago(time.Minute)), deadline(5*time.Minute)),
			replicaSet(name+"-1", state, since(ago(time.Minute)), of("apps", "Deployment", name)))
		for p := range 8 {
			one := pod(fmt.Sprintf("%s-1-%d", name, p), healthscope.Ready, since(ago(time.Minute)), of("apps", "ReplicaSet", name+"-1"))
			if p == 0 && state != healthscope.Ready {
				one.State, one.Reason, one.Message = healthscope.Failed, "CrashLoopBackOff", `container "web": CrashLoopBackOff, last exit code 1 (Error)`
			}
			all = append(all, one)
		}
	}
	all = all[:n]
	slices.SortFunc(all, func(a, b healthscope.Result) int { return a.Compare(b.Key) })
	return all
}

// BenchmarkJudge judges 10,000 results: in the sorted order of bundles, in another order, and with the history that hysteresis
// needs.
func BenchmarkJudge(b *testing.B) {
	sorted := installation(10_000)
	mixed := slices.Clone(sorted)
	for i := range mixed {
		j := i * 7919 % len(mixed)
		mixed[i], mixed[j] = mixed[j], mixed[i]
	}
	for name, results := range map[string][]healthscope.Result{"Sorted": sorted, "Mixed": mixed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				healthscope.Judge(results, healthscope.DefaultPolicy(), noon)
			}
		})
	}
	b.Run("Remembered", func(b *testing.B) {
		policy := healthscope.DefaultPolicy()
		policy.FailureGrace, policy.RecoveryHold = 30*time.Second, 15*time.Second
		before := healthscope.Judge(sorted, policy, ago(time.Second)).Members
		results := slices.Clone(sorted)
		b.ReportAllocs()
		for b.Loop() {
			policy.WithHistory(results, before)
			healthscope.Judge(results, policy, noon)
		}
	})
}
