package status_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

var (
	someApps     = []string{"web", "db", "cache"}
	someClusters = []string{"west+berlin", "west+bonn", "east+tokyo"}
	someNames    = []string{"a", "b", "c", "a-1"}
	someKinds    = []string{"Deployment", "Pod", "ConfigMap", "Gadget"}
	groups       = map[string]string{"Deployment": "apps", "Gadget": "acme.example"}
)

// drawContext draws a context in some state.
func drawContext(t *rapid.T) keys {
	state := rapid.SampledFrom([]string{"Instantiating", "Instantiated", "InstantiateFailed", "Terminating", "Terminated", "TerminateFailed", "Updated", "Dreaming"}).Draw(t, "state")
	k := newKeys("42", state).order(rapid.Permutation(someApps).Draw(t, "order")...)
	for _, app := range someApps {
		for _, cluster := range someClusters {
			if !rapid.Bool().Draw(t, app+" in "+cluster) {
				continue
			}
			var resources []string
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 3, rapid.ID).Draw(t, "expected") {
				kind := rapid.SampledFrom(someKinds).Draw(t, "kind")
				version := strings.TrimPrefix(groups[kind]+"/v1", "/")
				word := rapid.SampledFrom([]string{"", "Pending", "Applied", "Failed", "Retrying", "Deleted", "Terminated"}).Draw(t, "word")
				resources = append(resources, name+"+"+kind, object(version, kind, name), word)
			}
			k.cluster(app, cluster, resources...)
		}
	}
	return k
}

// drawReport draws a report of a bundle in a cluster, and whether there is one.
func drawReport(t *rapid.T, cluster string) (status.Report, bool) {
	var results []healthscope.Result
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		kind := rapid.SampledFrom(someKinds).Draw(t, "kind")
		r := healthscope.Result{
			Key:     healthscope.Key{Cluster: cluster, Group: groups[kind], Kind: kind, Namespace: rapid.SampledFrom([]string{"store", "back"}).Draw(t, "namespace"), Name: rapid.SampledFrom(someNames).Draw(t, "name")},
			Version: "v1", State: rapid.SampledFrom(healthscope.States()).Draw(t, "state"), Since: noon.Add(-time.Duration(rapid.IntRange(0, 900).Draw(t, "since")) * time.Second),
		}
		if kind == "Pod" && rapid.Bool().Draw(t, "owned") {
			r.Owner = &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: rapid.SampledFrom(someNames).Draw(t, "owner")}
		}
		results = append(results, r)
	}
	report := seen(healthscope.Judge(results, healthscope.DefaultPolicy(), noon).Members...)
	report.Observed = rapid.Bool().Draw(t, "observed")
	report.Saved = rapid.Bool().Draw(t, "saved")
	if report.Truncated = rapid.Bool().Draw(t, "truncated"); report.Truncated {
		report.Unlisted = healthscope.Summary{Total: 2, Ready: 1, Failed: 1, Healthy: 1}
	}
	if rapid.Bool().Draw(t, "lost") {
		report.Unreachable, report.Members = true, healthscope.MarkUnreachable(report.Members, healthscope.ReasonMonitorStale, "silence", noon)
	}
	return report, rapid.Bool().Draw(t, "known")
}

// drawInput draws the input for a document of a group.
func drawInput(t *rapid.T, tb testing.TB) status.Input {
	in := drawContext(t).input(tb, drawActions(t)...)
	for _, app := range someApps {
		for _, cluster := range someClusters {
			if report, known := drawReport(t, cluster); known {
				in.Reports[status.AppInCluster{App: app, Cluster: cluster}] = report
			}
		}
	}
	return in
}

func drawActions(t *rapid.T) []appcontext.Action {
	actions := []appcontext.Action{action(appcontext.ActionCreated, "", 9000), action(appcontext.ActionInstantiated, "42", rapid.IntRange(0, 900).Draw(t, "begun"))}
	if rapid.Bool().Draw(t, "ended") {
		actions = append(actions, action(appcontext.ActionTerminated, "42", 0))
	}
	return actions
}

// drawQuery draws a query with filters.
func drawQuery(t *rapid.T) status.Query {
	filter := func(name string, from []string) []string {
		list := rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{"nope"}, from...)), 0, 2, rapid.ID).Draw(t, name)
		slices.Sort(list)
		return list
	}
	return status.Query{
		Type:   rapid.SampledFrom([]status.Type{status.TypeRsync, status.TypeCluster, status.TypeAll}).Draw(t, "type"),
		Output: rapid.SampledFrom([]status.Output{status.OutputAll, status.OutputDetail}).Draw(t, "output"), Health: rapid.Bool().Draw(t, "health"),
		Apps: filter("apps", someApps), Clusters: filter("clusters", someClusters), Resources: filter("resources", someNames),
	}
}

// TestCountsAreThoseOfWhatIsListed checks that the counts are those of the listed resources, in the document and in the summary of the
// same query. Listed resources match the filters, and every filter value is either in the document or unmatched.
func TestCountsAreThoseOfWhatIsListed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in, q := drawInput(rt, t), drawQuery(rt)
		d := status.New(in, q)
		rsync, cluster := map[string]int{}, map[string]int{}
		found := map[string]bool{}
		each(d, func(a status.App, c status.Cluster, r status.Resource) {
			full := c.Provider + "+" + c.Name
			for filter, name := range map[string]string{"app": a.Name, "cluster": full, "resource": r.Name} {
				list := map[string][]string{"app": q.Apps, "cluster": q.Clusters, "resource": q.Resources}[filter]
				if len(list) > 0 && !slices.Contains(list, name) {
					rt.Errorf("%s %q is listed, and the filter is %q", filter, name, list)
				}
				found[filter+name] = true
			}
			if q.Type != status.TypeCluster && r.RsyncStatus != "" {
				rsync[r.RsyncStatus]++
			}
			if word := r.ClusterStatus; q.Type != status.TypeRsync {
				if word == "" {
					word = status.Present
				}
				cluster[string(word)]++
			}
		})
		if wire(t, rsync) != wire(t, zero(d.RsyncStatus)) || wire(t, cluster) != wire(t, zero(d.ClusterStatus)) {
			rt.Errorf("listed are %v and %v, counted %v and %v", rsync, cluster, d.RsyncStatus, d.ClusterStatus)
		}
		var unmatched status.Unmatched
		if d.Unmatched != nil {
			unmatched = *d.Unmatched
		}
		for filter, lists := range map[string][2][]string{"app": {q.Apps, unmatched.Apps}, "cluster": {q.Clusters, unmatched.Clusters}, "resource": {q.Resources, unmatched.Resources}} {
			for _, name := range lists[0] {
				if found[filter+name] == slices.Contains(lists[1], name) {
					rt.Errorf("%s %q: found %t, unmatched %q", filter, name, found[filter+name], lists[1])
				}
			}
		}
		q.Output = status.OutputSummary
		summary := status.New(in, q)
		d.Apps = nil
		if got, want := wire(t, summary), wire(t, d); got != want {
			rt.Errorf("the summary is\n%s\nand the document without apps\n%s", got, want)
		}
	})
}

func zero(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return counts
}

// TestOrderMakesNoDifference checks that neither the order of members nor an earlier Decode changes a byte of the document.
func TestOrderMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in, q := drawInput(rt, t), drawQuery(rt)
		want := wire(t, status.New(in, q))
		other := in
		other.Reports = map[status.AppInCluster]status.Report{}
		for place, r := range in.Reports {
			r.Members = slices.Clone(r.Members)
			slices.Reverse(r.Members)
			other.Reports[place] = r
		}
		other.Contents = status.Decode(in.View, in.Contents)
		if got := wire(t, status.New(other, q)); got != want {
			rt.Errorf("one document is\n%s\nthe other\n%s", want, got)
		}
	})
}

// TestHealthDoesNotDependOnTheType checks this for any input. Nothing is Ready in an instance that is terminated or cannot be read.
func TestHealthDoesNotDependOnTheType(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in, q := drawInput(rt, t), drawQuery(rt)
		q.Health, q.Output, q.Resources, q.Clusters, q.Apps = true, status.OutputAll, nil, nil, nil
		health := map[status.Type]string{}
		for _, kind := range []status.Type{status.TypeRsync, status.TypeCluster, status.TypeAll} {
			q.Type = kind
			d := status.New(in, q)
			health[kind] = wire(t, d.Health)
			checkWhole(rt, d, wire(t, d))
			each(d, func(_ status.App, c status.Cluster, r status.Resource) {
				if d.Status == "Terminated" {
					checkTerminated(rt, c, r)
				}
			})
		}
		if health[status.TypeRsync] != health[status.TypeCluster] || health[status.TypeRsync] != health[status.TypeAll] {
			rt.Errorf("health depends on the type: %v", health)
		}
	})
}

// checkWhole fails the test when a document with health is Ready without reason, when its counts do not add up, or when they do not give
// its state, as they do unless the context fails or ends.
func checkWhole(t *rapid.T, d status.Document, text string) {
	counts := d.Health.Resources
	summary := healthscope.Summary{Total: counts.Total, Ready: counts.Ready, Pending: counts.Pending, Failed: counts.Failed, Unknown: counts.Unknown}
	if counts.Ready+counts.Pending+counts.Failed+counts.Unknown != counts.Total {
		t.Errorf("counts do not add up: %+v", counts)
	}
	if d.Health.State == "Ready" && (counts.Total == 0 || counts.Ready != counts.Total || d.Status == "Terminated") {
		t.Errorf("it is Ready: %s", text)
	}
	runs := slices.Contains([]string{"Instantiating", "Instantiated", "Updated"}, d.Status) && d.State.Actions[len(d.State.Actions)-1].State != "Terminated"
	if runs && d.Health.State != string(summary.State()) {
		t.Errorf("it is %s with %+v", d.Health.State, counts)
	}
}

// checkTerminated fails the test when a resource of a terminated instance runs.
func checkTerminated(t *rapid.T, c status.Cluster, r status.Resource) {
	if r.Health.State == "Ready" || r.Health.CountsAs != "" || r.RsyncStatus != "" && r.RsyncStatus != "Deleted" {
		t.Errorf("%s runs: %+v", r.Name, r.Health)
	}
	if r.ClusterStatus == status.Present && c.Source != "" {
		t.Errorf("%s is said to be there for what was saved before", r.Name)
	}
}

// A document does not depend on the documents that were built from the same contexts before.
func TestADocumentIsThatOfItsReports(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawInput(rt, t)
		for range rapid.IntRange(4, 8).Draw(rt, "documents") {
			for _, at := range slices.SortedFunc(maps.Keys(in.Reports), func(a, b status.AppInCluster) int { return strings.Compare(a.App+a.Cluster, b.App+b.Cluster) }) {
				report := in.Reports[at]
				switch rapid.IntRange(0, 2).Draw(rt, "change") {
				case 0: // As many objects, in other states and in another order.
					report.Members = slices.Clone(report.Members)
					slices.Reverse(report.Members)
					for i := range report.Members {
						report.Members[i].State = rapid.SampledFrom(healthscope.States()).Draw(rt, "state")
					}
					in.Reports[at] = report
				case 1:
					if other, known := drawReport(rt, at.Cluster); known {
						in.Reports[at] = other
					}
				}
			}
			q := drawQuery(rt)
			q.Apps, q.Clusters = nil, nil
			afresh := in
			afresh.Contents = status.Decode(in.View, nil)
			if got, want := wire(t, status.New(in, q)), wire(t, status.New(afresh, q)); got != want {
				rt.Fatalf("%+v: got %s, want %s", q, got, want)
			}
		}
	})
}
