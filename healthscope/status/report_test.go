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

// TestOldFactsSaySo checks that a default document shows the age only of facts that are not current.
func TestOldFactsSaySo(t *testing.T) {
	ready, long := deployment(healthscope.Ready), noon.Add(-time.Hour)
	tests := map[string]struct {
		query    string
		report   status.Report
		asOf     time.Time
		document status.Freshness
		cluster  status.Freshness
	}{
		"seen":                   {"type=cluster", seen(ready), noon.Add(-9 * time.Second), status.Freshness{}, status.Freshness{}},
		"saved":                  {"type=cluster", savedWeb(long), noon, status.Freshness{Source: "context", LastSeen: since(time.Hour)}, status.Freshness{Source: "context", LastSeen: since(time.Hour)}},
		"saved, nobody knows":    {"type=cluster", savedWeb(time.Time{}), noon, status.Freshness{Source: "context"}, status.Freshness{Source: "context"}},
		"lost":                   {"type=cluster", lost(ready), noon, status.Freshness{LastSeen: since(time.Minute)}, status.Freshness{LastSeen: since(time.Minute)}},
		"etcd away":              {"type=cluster", seen(ready), long, status.Freshness{LastSeen: since(time.Hour)}, status.Freshness{}},
		"etcd away, rsync":       {"type=rsync", lost(ready), long, status.Freshness{LastSeen: since(time.Hour)}, status.Freshness{}},
		"rsync does not look":    {"type=rsync", lost(ready), noon, status.Freshness{}, status.Freshness{}},
		"health always has ages": {"health=true", seen(ready), noon.Add(-time.Second), status.Freshness{LastSeen: since(time.Second)}, status.Freshness{LastSeen: since(0)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := web("Instantiated", "Applied").input(t)
			in.Reports[berlin], in.AsOf = tt.report, tt.asOf
			d := status.New(in, query(t, tt.query))
			check(t, "document", tt.document, d.Freshness)
			check(t, "cluster", tt.cluster, d.Apps[0].Clusters[0].Freshness)
			check(t, "summary", tt.document, status.New(in, query(t, tt.query+"&output=summary")).Freshness)
			list := status.New(in, query(t, "instance")) // It depends on etcd alone.
			check(t, "instances", 1, len(list.Instances))
			check(t, "age of the list", tt.asOf.Equal(long), list.Freshness == status.Freshness{LastSeen: since(time.Hour)})
		})
	}
}

// TestOnlyWhatIsListedHasAnAge checks that the age of a cluster in which a filter matches nothing does not count.
func TestOnlyWhatIsListedHasAnAge(t *testing.T) {
	in := web("Instantiated", "Applied").cluster("web", "west+bonn", "x+Pod", object("v1", "Pod", "x"), "Applied").input(t)
	in.Reports[berlin], in.Reports[status.AppInCluster{App: "web", Cluster: "west+bonn"}] = seen(deployment(healthscope.Ready)), lost()
	check(t, "document", status.Freshness{}, status.New(in, query(t, "type=cluster&resource=web")).Freshness)
}

// TestWhatIsSavedIsJudged checks that saved bundles are judged like others, with the built-in rules.
func TestWhatIsSavedIsJudged(t *testing.T) {
	pod := `{"podStatuses":[{"metadata":{"name":"web","namespace":"store"},"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}]}`
	tests := map[string]struct{ text, want string }{
		"pod that crashes": {pod, "Applied|Present|Failed|CrashLoopBackOff|Failed"},
		"nothing in it":    {`{"podStatuses":[]}`, "Applied|NotPresent|NotPresent|NotFound|Failed"},
		"no JSON":          {"{", "Applied|Unknown|Unknown|MalformedBundle|Unknown"},
		"not the type":     {`{"podStatuses":7}`, "Applied|Unknown|Unknown|MalformedBundle|Unknown"},
		"never filled":     {`{"ready":false,"resourceCount":0}`, "Applied|Unknown|Unknown|NotObserved|Unknown"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Applied").bundle("web", "west+berlin", tt.text).input(t)
			in.Reports[berlin] = status.SavedReport(in.Contents.SavedBundle(berlin, nil), in.Policy, noon, noon)
			check(t, "pod", []string{"web/berlin/Pod/web: " + tt.want}, words(status.New(in, query(t, "output=small"))))
		})
	}
	saved := status.DecodeBundle("west+berlin", pod, nil)
	first, second := status.SavedReport(saved, healthscope.DefaultPolicy(), noon, noon), status.SavedReport(saved, healthscope.DefaultPolicy(), noon, noon.Add(time.Second))
	check(t, "not judged again while nothing changes", true, &first.Members[0] == &second.Members[0])
	in := edge("Instantiated").input(t)
	if b := in.Contents.SavedBundle(berlin, nil); b != nil || status.SavedReport(b, in.Policy, noon, noon).Observed {
		t.Error("a bundle was found that was never saved")
	}
}

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
