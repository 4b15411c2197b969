package status_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// A report of a saved bundle does not depend on earlier reports of it, at other times or with another policy.
func TestASavedReportIsThatOfItsTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		since := noon.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "since")) * time.Minute).Format(time.RFC3339)
		text := fmt.Sprintf(`{"resourceCount":1,"deploymentStatuses":[{"metadata":{"name":"web","namespace":"shop","creationTimestamp":%q},
			"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":%d,"conditions":[{"type":"Available","status":"False","lastTransitionTime":%q}]}}]}`,
			noon.Format(time.RFC3339), rapid.IntRange(0, 2).Draw(t, "ready"), since)
		if rapid.Bool().Draw(t, "own") {
			text = fmt.Sprintf(`{"resourceCount":1,"summary":{"total":1},"resources":[{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web","state":%q,"reason":%q,"since":%q}]}`,
				rapid.SampledFrom([]string{"Ready", "Pending", "Failed", "NotPresent", "Terminating"}).Draw(t, "state"), rapid.SampledFrom([]string{"", "NoStatus"}).Draw(t, "reason"), since)
		}
		kept := status.DecodeBundle("west+berlin", text, nil)
		for range rapid.IntRange(2, 6).Draw(t, "times") {
			now := noon.Add(time.Duration(rapid.IntRange(-30, 90).Draw(t, "now")) * time.Minute)
			policy := healthscope.DefaultPolicy()
			policy.PendingTimeout = time.Duration(rapid.IntRange(0, 2).Draw(t, "timeout")) * 10 * time.Minute
			policy.FailureGrace = time.Duration(rapid.IntRange(0, 1).Draw(t, "grace")) * 5 * time.Minute
			got, want := status.SavedReport(kept, policy, noon, now), status.SavedReport(status.DecodeBundle("west+berlin", text, nil), policy, noon, now)
			if diff := cmp.Diff(want.Members, got.Members); diff != "" {
				t.Fatalf("at %s (-afresh +kept):\n%s", now, diff)
			}
		}
	})
}
