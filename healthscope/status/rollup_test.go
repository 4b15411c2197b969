package status_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

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
