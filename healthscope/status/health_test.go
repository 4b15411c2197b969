package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestHealthOfResources covers the states of a resource for each rsync status and presence.
func TestHealthOfResources(t *testing.T) {
	ready := deployment(healthscope.Ready)
	crashed := healthscope.Judge([]healthscope.Result{
		{Key: ready.Key, Version: "v1", State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "0/1 ready", Since: noon.Add(-time.Minute)},
		{
			Key: healthscope.Key{Cluster: "west+berlin", Kind: "Pod", Namespace: "store", Name: "web-0"}, State: healthscope.Failed, Reason: "CrashLoopBackOff", Message: "exit code 1",
			Since: noon.Add(-time.Minute), Owner: &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: "web"},
		},
	}, healthscope.DefaultPolicy(), noon).Members
	cut := seen()
	cut.Truncated, cut.Unlisted = true, healthscope.Summary{Total: 3, Ready: 3, Healthy: 3}
	tests := map[string]struct {
		rsync  string
		begun  int
		kind   string
		report status.Report
		want   status.Health
		total  int
	}{
		"ready":         {"Applied", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Ready", Since: since(time.Hour), Age: new(int64(3600)), CountsAs: "Ready"}, 1},
		"crashed":       {"Applied", 7200, "apps/v1 Deployment", seen(crashed...), status.Health{State: "Failed", Reason: "CrashLoopBackOff", Message: "exit code 1", Cause: "Pod web-0: CrashLoopBackOff: exit code 1", Since: since(time.Minute), Age: new(int64(60)), CountsAs: "Failed"}, 1},
		"refused":       {"Failed", 7200, "apps/v1 Deployment", seen(), status.Health{State: "Failed", Reason: "RsyncFailed", Message: "rsync could not apply it", CountsAs: "Failed"}, 1},
		"refused, old":  {"Failed", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Failed", Reason: "RsyncFailed", Message: "rsync could not apply it; what is there is Ready", CountsAs: "Failed"}, 1},
		"not yet":       {"Pending", 30, "apps/v1 Deployment", seen(), status.Health{State: "Pending", Reason: "RsyncPending", Message: "rsync has not applied it yet", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"retrying":      {"Retrying", 30, "apps/v1 Deployment", status.Report{}, status.Health{State: "Pending", Reason: "RsyncRetrying", Message: "rsync tries to apply it", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"just missing":  {"Applied", 30, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "NotFound", Message: "rsync has applied it, and it is not there", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"missing":       {"Applied", 61, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "NotFound", Message: "rsync has applied it, and it is not there", CountsAs: "Failed"}, 1},
		"unseen":        {"Applied", 7200, "apps/v1 Deployment", status.Report{}, status.Health{State: "Unknown", Reason: "NotObserved", Message: "no monitor has reported on the app in this cluster", CountsAs: "Unknown"}, 1},
		"lost, missing": {"Applied", 7200, "apps/v1 Deployment", lost(), status.Health{State: "Unknown", Reason: "ClusterUnreachable", Message: "no answer", CountsAs: "Unknown"}, 1},
		"lost":          {"Applied", 7200, "apps/v1 Deployment", lost(ready), status.Health{State: "Unknown", Reason: "ClusterUnreachable", Message: "no answer; last seen Ready", LastState: "Ready", Since: since(time.Minute), Age: new(int64(60)), CountsAs: "Unknown"}, 1},
		"not followed":  {"Applied", 7200, "acme.example/v1 Gadget", seen(), status.Health{State: "Unknown", Reason: "NotFollowed", Message: "the monitor does not report this kind"}, 0},
		"not listed":    {"Applied", 7200, "apps/v1 Deployment", cut, status.Health{State: "Unknown", Reason: "NotListed", Message: "the bundle is too large to name it"}, 3},
		"deleted":       {"Deleted", 7200, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "Terminated"}, 0},
		"deleted, here": {"Deleted", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Terminating", Reason: "StillPresent", Message: "rsync has deleted it, and it is still there; it is Ready"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tt.kind, " ")
			in := edge("Instantiated", "web+"+kind, object(apiVersion, kind, "web"), tt.rsync).input(t, action(appcontext.ActionInstantiated, "42", tt.begun))
			in.Reports[berlin] = tt.report
			d := status.New(in, query(t, "health=true"))
			check(t, "health", &tt.want, d.Apps[0].Clusters[0].Resources[0].Health)
			check(t, "resources that count", tt.total, d.Health.Resources.Total)
		})
	}
}

// shop returns the input for a context with two apps in two clusters, with one resource each.
func shop(t *testing.T, states map[status.AppInCluster]healthscope.State) status.Input {
	t.Helper()
	k := newKeys("42", "Instantiated").order("web", "db")
	reports := map[status.AppInCluster]status.Report{}
	for _, app := range []string{"db", "web"} {
		for _, cluster := range []string{"west+bonn", "west+berlin"} {
			place := status.AppInCluster{App: app, Cluster: cluster}
			k.cluster(app, cluster, app+"+Deployment", object("apps/v1", "Deployment", app), "Applied")
			m := member(cluster, "apps", "Deployment", app, states[place])
			switch states[place] {
			case healthscope.Unknown:
				reports[place] = lost(member(cluster, "apps", "Deployment", app, healthscope.Ready))
			case healthscope.Failed:
				m.Reason, m.Message, m.Since = "CrashLoopBackOff", "exit code 1", noon.Add(-5*time.Minute)
				reports[place] = seen(m)
			default:
				reports[place] = seen(m)
			}
		}
	}
	in := k.input(t)
	in.Reports = reports
	return in
}

// TestHealthOfMany checks that the health of a cluster, an app and the document is that of its worst resource, which the message names.
func TestHealthOfMany(t *testing.T) {
	webBerlin, webBonn := status.AppInCluster{App: "web", Cluster: "west+berlin"}, status.AppInCluster{App: "web", Cluster: "west+bonn"}
	dbBerlin, dbBonn := status.AppInCluster{App: "db", Cluster: "west+berlin"}, status.AppInCluster{App: "db", Cluster: "west+bonn"}
	in := shop(t, map[status.AppInCluster]healthscope.State{webBerlin: healthscope.Ready, webBonn: healthscope.Ready, dbBerlin: healthscope.Failed, dbBonn: healthscope.Unknown})
	ready := status.Health{State: "Ready", Since: since(time.Hour), Age: new(int64(3600)), Resources: &status.Counts{Total: 1, Ready: 1}}
	two := ready
	two.Resources = &status.Counts{Total: 2, Ready: 2}
	failed := status.Health{
		State: "Failed", Reason: "CrashLoopBackOff", Message: "Deployment/db of db in west+berlin: exit code 1", Since: since(5 * time.Minute), Age: new(int64(300)),
		Resources: &status.Counts{Total: 1, Failed: 1},
	}
	db, all := failed, failed
	db.Resources = &status.Counts{Total: 2, Failed: 1, Unknown: 1}
	all.Resources = &status.Counts{Total: 4, Ready: 2, Failed: 1, Unknown: 1}
	unknown := status.Health{
		State: "Unknown", Reason: "ClusterUnreachable", Message: "Deployment/db of db in west+bonn: no answer; last seen Ready", Since: since(time.Minute), Age: new(int64(60)),
		Resources: &status.Counts{Total: 1, Unknown: 1},
	}
	d := status.New(in, query(t, "health=true"))
	check(t, "all", &all, d.Health)
	check(t, "web", &two, d.Apps[0].Health)
	check(t, "web in berlin", &ready, d.Apps[0].Clusters[0].Health)
	check(t, "db", &db, d.Apps[1].Health)
	check(t, "db in berlin", &failed, d.Apps[1].Clusters[0].Health)
	check(t, "db in bonn", &unknown, d.Apps[1].Clusters[1].Health)
	check(t, "db in bonn, last seen", since(time.Minute), d.Apps[1].Clusters[1].LastSeen)
	check(t, "the oldest", since(time.Minute), d.LastSeen)
	check(t, "with a filter", &two, status.New(in, query(t, "health=true&output=summary&app=web")).Health)
	check(t, "summary", &all, status.New(in, query(t, "health=true&output=summary")).Health)
}

// TestOwnedObjectsAreListedAndDoNotCount checks that a terminating pod does not make the app of its Deployment unhealthy.
func TestOwnedObjectsAreListedAndDoNotCount(t *testing.T) {
	d := deployment(healthscope.Ready)
	pod := healthscope.Result{Key: healthscope.Key{Cluster: "west+berlin", Kind: "Pod", Namespace: "store", Name: "web-1"}, State: healthscope.Terminating, Owner: &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: "web"}}
	in := web("Instantiated", "Applied").input(t)
	in.Reports[berlin] = seen(healthscope.Judge([]healthscope.Result{d.Result, pod}, in.Policy, noon).Members...)
	got := status.New(in, query(t, "type=cluster&health=true"))
	check(t, "resources", []string{"web/berlin/Deployment/web: ||Ready||Ready", "web/berlin/Pod/web-1: ||Terminating||"}, words(got))
	check(t, "health", "Ready", got.Health.State)
	check(t, "counts", map[string]int{"Present": 2}, got.ClusterStatus)
}

// TestWhatABundleDoesNotNameCounts checks that the unlisted objects of a bundle count, unless the query filters by name.
func TestWhatABundleDoesNotNameCounts(t *testing.T) {
	in := web("Instantiated", "Applied").input(t)
	r := seen(deployment(healthscope.Ready))
	r.Truncated, r.Unlisted = true, healthscope.Summary{Total: 500, Ready: 499, Pending: 1, Healthy: 499}
	in.Reports[berlin] = r
	d := status.New(in, query(t, "health=true&type=cluster"))
	check(t, "counts", &status.Counts{Total: 501, Ready: 500, Pending: 1}, d.Health.Resources)
	check(t, "state", "Pending", d.Health.State)
	if !d.Truncated || !d.Apps[0].Clusters[0].Truncated {
		t.Error("the document does not say that it leaves objects out")
	}
	check(t, "one of them", &status.Counts{Total: 1, Ready: 1}, status.New(in, query(t, "health=true&resource=web")).Health.Resources)
	ending := in
	ending.Info.Actions = append(ending.Info.Actions, action(appcontext.ActionTerminated, "42", 1))
	check(t, "terminating", &status.Counts{}, status.New(ending, query(t, "health=true")).Health.Resources)
	gone := web("Terminated", "Deleted").input(t)
	gone.Reports[berlin] = status.Report{Observed: true, Truncated: true, Unlisted: r.Unlisted}
	check(t, "terminated, and not gone", "Terminating", status.New(gone, query(t, "health=true")).Health.State)
	r = lost(r.Members...)
	r.Truncated, r.Unlisted = true, healthscope.Summary{Total: 500, Ready: 500}
	in.Reports[berlin] = r
	check(t, "lost", &status.Counts{Total: 501, Unknown: 501}, status.New(in, query(t, "health=true&type=cluster")).Health.Resources)
}

// TestAnAppOfUnfollowedKindsIsNotReady checks that an app is not Ready when no monitor follows its kinds.
func TestAnAppOfUnfollowedKindsIsNotReady(t *testing.T) {
	in := network(t)
	in.Reports[status.AppInCluster{App: "network-intents", Cluster: "west+berlin"}] = seen()
	d := status.New(in, query(t, "output=small"))
	check(t, "counts", map[string]int{"Unknown": 3}, d.ClusterStatus)
	check(t, "health", "Unknown NotFollowed", d.Health.State+" "+d.Health.Reason)
	empty := newKeys("42", "Instantiated").order().input(t)
	d = status.New(empty, query(t, "output=small"))
	check(t, "empty context", "Unknown NoResources", d.Health.State+" "+d.Health.Reason)
}

// TestTheContextsOwnFailureCounts checks that a failed state of the context counts even when every resource is Ready.
func TestTheContextsOwnFailureCounts(t *testing.T) {
	for _, state := range []string{"InstantiateFailed", "UpdatedFailed"} {
		in := web(state, "Applied").input(t)
		in.Reports[berlin] = seen(deployment(healthscope.Ready))
		want := status.Health{State: "Failed", Reason: "RsyncFailed", Message: "the state of the context is " + state, Resources: &status.Counts{Total: 1, Ready: 1}}
		check(t, state, &want, status.New(in, query(t, "output=small")).Health)
		check(t, state+", its app", "Ready", status.New(in, query(t, "output=small&app=web")).Health.State)
	}
}

// TestSinceOfMany checks that the message names the resource that has been in the worst state longest, and that Since of a Ready
// rollup is the latest of its resources, if all are known.
func TestSinceOfMany(t *testing.T) {
	at := func(name string, state healthscope.State, before time.Duration) healthscope.Member {
		m := member("west+berlin", "apps", "Deployment", name, state)
		if m.Since = noon.Add(-before); before == 0 {
			m.Since = time.Time{}
		}
		m.Message = "it is " + string(state)
		return m
	}
	tests := map[string]struct {
		members []healthscope.Member
		since   string
		age     *int64
		message string
	}{
		"the longest":      {[]healthscope.Member{at("a", healthscope.Failed, 5*time.Minute), at("b", healthscope.Failed, 9*time.Minute), at("c", healthscope.Failed, time.Minute)}, since(9 * time.Minute), new(int64(540)), "Deployment/b of web in west+berlin: it is Failed"},
		"one is not known": {[]healthscope.Member{at("a", healthscope.Pending, 0), at("b", healthscope.Pending, time.Minute)}, since(time.Minute), new(int64(60)), "Deployment/b of web in west+berlin: it is Pending"},
		"none is known":    {[]healthscope.Member{at("a", healthscope.Pending, 0), at("b", healthscope.Pending, 0)}, "", nil, "Deployment/a of web in west+berlin: it is Pending"},
		"a worse one":      {[]healthscope.Member{at("a", healthscope.Pending, time.Hour), at("b", healthscope.Failed, time.Minute), at("c", healthscope.Unknown, time.Hour)}, since(time.Minute), new(int64(60)), "Deployment/b of web in west+berlin: it is Failed"},
		"all ready":        {[]healthscope.Member{at("a", healthscope.Ready, time.Minute), at("b", healthscope.Ready, 2*time.Second), at("c", healthscope.Ready, time.Hour)}, since(2 * time.Second), new(int64(2)), ""},
		"ready, not known": {[]healthscope.Member{at("a", healthscope.Ready, time.Minute), at("b", healthscope.Ready, 0)}, "", nil, ""},
		"still to come":    {[]healthscope.Member{at("a", healthscope.Failed, -time.Minute)}, since(-time.Minute), new(int64(0)), "Deployment/a of web in west+berlin: it is Failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := edge("Instantiated").input(t)
			in.Reports[berlin] = seen(tt.members...)
			d := status.New(in, query(t, "type=cluster&health=true"))
			for _, h := range []*status.Health{d.Health, d.Apps[0].Health, d.Apps[0].Clusters[0].Health} {
				check(t, "since", tt.since, h.Since)
				check(t, "age", tt.age, h.Age)
				check(t, "message", tt.message, h.Message)
			}
		})
	}
}

// TestOneClusterSaysNothingOfAnother checks that a kind that is followed in one cluster does not count as followed in another.
func TestOneClusterSaysNothingOfAnother(t *testing.T) {
	gadget := []string{"x+Gadget", object("acme.example/v1", "Gadget", "x"), "Applied"}
	in := newKeys("42", "Instantiated").order("web").cluster("web", "west+berlin", gadget...).cluster("web", "west+bonn", gadget...).input(t)
	in.Reports[berlin] = seen(member("west+berlin", "acme.example", "Gadget", "y", healthscope.Ready))
	in.Reports[status.AppInCluster{App: "web", Cluster: "west+bonn"}] = seen()
	want := []string{"web/berlin/Gadget/x: Applied|NotPresent", "web/berlin/Gadget/y: |Present", "web/bonn/Gadget/x: Applied|Unknown"}
	check(t, "resources", want, words(status.New(in, query(t, "type=all"))))
}

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
