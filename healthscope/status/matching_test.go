package status_test

import (
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestWhatIsInTheCluster covers each way in which an expected or an unexpected resource can be present or absent, in the words of a
// document and in those of EMCO 22.12: readyStatus and readyCounts.
func TestWhatIsInTheCluster(t *testing.T) {
	body := object("apps/v1", "Deployment", "web")
	ready, elsewhere := deployment(healthscope.Ready), deployment(healthscope.Ready)
	elsewhere.Namespace = "elsewhere"
	pod, gadget := member("west+berlin", "", "Pod", "web", healthscope.Pending), member("west+berlin", "acme.example", "Gadget", "x", healthscope.Ready)
	with := func(report status.Report, change func(*status.Report)) status.Report {
		change(&report)
		return report
	}
	truncated := func(unlisted healthscope.Summary, members ...healthscope.Member) status.Report {
		return with(seen(members...), func(r *status.Report) { r.Truncated, r.Unlisted = true, unlisted })
	}
	well := healthscope.Summary{Total: 2, Ready: 2}
	tests := map[string]struct {
		kind, body, rsync string
		report            status.Report
		want, emco        string
	}{
		"there":                           {"Deployment", body, "Applied", seen(ready), "Deployment/web: Applied|Present", `Ready {"Ready":1}`},
		"there, and failed":               {"Deployment", body, "Applied", seen(deployment(healthscope.Failed)), "Deployment/web: Applied|Present", `NotReady {"NotReady":1}`},
		"in another version":              {"Deployment", object("extensions/v1beta1", "Deployment", "web"), "Applied", seen(ready), "Deployment/web: Applied|Present", `Ready {"Ready":1}`},
		"another group":                   {"Deployment", object("acme.example/v1", "Deployment", "web"), "Applied", seen(ready), "Deployment/web: Applied|Unknown, Deployment/web: |Present", `Ready {"Ready":1}`},
		"namespace unsaid":                {"Deployment", body, "Applied", seen(elsewhere), "Deployment/web: Applied|Present", `Ready {"Ready":1}`},
		"other namespace":                 {"Deployment", body + "  namespace: store\n", "Applied", seen(elsewhere), "Deployment/web: Applied|NotPresent, Deployment/web: |Present", `NotReady {"NotPresent":1,"Ready":1}`},
		"gone":                            {"Deployment", body, "Applied", seen(), "Deployment/web: Applied|NotPresent", `NotReady {"NotPresent":1}`},
		"more":                            {"Deployment", body, "Applied", seen(pod, ready), "Deployment/web: Applied|Present, Pod/web: |Present", `NotReady {"NotReady":1,"Ready":1}`},
		"no bundle":                       {"Deployment", body, "Applied", status.Report{}, "Deployment/web: Applied|Unknown", `NotReady {"NotPresent":1}`},
		"not filled":                      {"Deployment", body, "Applied", with(seen(), func(r *status.Report) { r.Observed = false }), "Deployment/web: Applied|Unknown", `NotReady {"NotPresent":1}`},
		"too large":                       {"Deployment", body, "Applied", truncated(well, pod), "Deployment/web: Applied|Unknown, Pod/web: |Present", `NotReady {"NotReady":1}`},
		"too large, and named":            {"Deployment", body, "Applied", truncated(well, ready), "Deployment/web: Applied|Present", `Ready {"Ready":1}`},
		"too large, and the rest is well": {"ConfigMap", object("v1", "ConfigMap", "web"), "Applied", truncated(well, ready), "ConfigMap/web: Applied|Unknown, Deployment/web: |Present", `Ready {"Ready":1}`},
		"too large, and the rest is not":  {"Deployment", body, "Applied", truncated(healthscope.Summary{Total: 2, Ready: 1}, ready), "Deployment/web: Applied|Present", `NotReady {"Ready":1}`},
		"partly unreadable":               {"Deployment", body, "Applied", with(seen(), func(r *status.Report) { r.Malformed = []string{"deploymentStatuses"} }), "Deployment/web: Applied|Unknown", `NotReady {"NotPresent":1}`},
		"lost":                            {"Deployment", body, "Applied", lost(), "Deployment/web: Applied|Unknown", `NotReady {"NotPresent":1}`},
		"lost, known before":              {"Deployment", body, "Applied", lost(ready), "Deployment/web: Applied|Unknown", `NotReady {"NotReady":1}`},
		"kind not followed":               {"Gadget", object("acme.example/v1", "Gadget", "web"), "Applied", seen(), "Gadget/web: Applied|Unknown", `Ready {}`},
		"kind followed":                   {"Gadget", object("acme.example/v1", "Gadget", "web"), "Applied", seen(gadget), "Gadget/web: Applied|NotPresent, Gadget/x: |Present", `NotReady {"NotPresent":1,"Ready":1}`},
		"not applied":                     {"Pod", object("v1", "Pod", "web"), "", seen(), "Pod/web: Pending|NotPresent", `NotReady {"NotPresent":1}`},
		"word of another age":             {"Pod", object("v1", "Pod", "web"), "Paused", seen(), "Pod/web: Paused|NotPresent", `NotReady {"NotPresent":1}`},
		"body of an update":               {"Pod", "nil", "Applied", seen(pod), "Pod/web: Applied|Present", `NotReady {"NotReady":1}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := edge("Instantiated", "web+"+tt.kind, tt.body, tt.rsync).input(t)
			in.Reports[berlin] = tt.report
			check(t, "resources", tt.want, strings.ReplaceAll(strings.Join(words(status.New(in, query(t, "type=all"))), ", "), "web/berlin/", ""))
			emco := emcoGroup(t, in, "status=ready&output=summary")
			check(t, "in the words of EMCO", tt.emco, emco.ReadyStatus+" "+marshal(emco.ReadyCounts))
		})
	}
}

// TestSameNameTwice checks that, of several objects that match the expected one, the one in the context's namespace is chosen.
func TestSameNameTwice(t *testing.T) {
	here, there := member("west+berlin", "", "Service", "web", healthscope.Ready), member("west+berlin", "", "Service", "web", healthscope.Failed)
	there.Namespace = "back"
	in := edge("Instantiated", "web+Service", object("v1", "Service", "web"), "Applied").input(t)
	in.Reports[berlin] = seen(there, here)
	d := status.New(in, query(t, "type=all&health=true"))
	var got []string
	for _, r := range d.Apps[0].Clusters[0].Resources {
		got = append(got, r.RsyncStatus+" "+r.Namespace+" "+r.Health.State)
	}
	check(t, "services", []string{"Applied store Ready", " back Failed"}, got)
	here.Namespace = "aside"
	in.Reports[berlin] = seen(there, here)
	check(t, "neither in its namespace", "aside", status.New(in, query(t, "health=true")).Apps[0].Clusters[0].Resources[0].Namespace)
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
