package healthscope_test

import (
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// A Deployment that is not Ready is Failed when none of its pods is ready and one of them is Failed. The pod is owned: it
// explains the Deployment, and does not count.
func ExampleJudge() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	results := []healthscope.Result{
		{
			Key: healthscope.Key{Cluster: "edge01", Group: "apps", Kind: "Deployment", Namespace: "default", Name: "sink"}, Version: "v1",
			State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Since: now.Add(-time.Minute),
			Replicas: &healthscope.Replicas{Ready: 0, Desired: 1},
		},
		{
			Key: healthscope.Key{Cluster: "edge01", Kind: "Pod", Namespace: "default", Name: "sink-0"}, Version: "v1",
			State: healthscope.Failed, Reason: "CrashLoopBackOff", Since: now.Add(-time.Minute),
			Owner: &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: "sink"},
		},
	}
	judgement := healthscope.Judge(results, healthscope.DefaultPolicy(), now)
	for _, m := range judgement.Members {
		fmt.Printf("%s %s: %s, owned: %t, cause: %q\n", m.Kind, m.Name, m.State, m.Owned, m.Cause)
	}
	summary := healthscope.Summarize(judgement.Members)
	fmt.Println(summary.State(), summary.Total)
	// Output:
	// Pod sink-0: Failed, owned: true, cause: ""
	// Deployment sink: Failed, owned: false, cause: "Pod sink-0: CrashLoopBackOff"
	// Failed 1
}
