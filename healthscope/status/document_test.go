package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
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

// TestATerminatedInstanceIsNeverShownAsRunning checks that a document ignores the saved bundles of a terminated instance, and that
// it shows an object that still exists as such.
func TestATerminatedInstanceIsNeverShownAsRunning(t *testing.T) {
	ready := deployment(healthscope.Ready)
	ended := []appcontext.Action{action(appcontext.ActionInstantiated, "42", 7200), action(appcontext.ActionTerminated, "42", 60)}
	tests := map[string]struct {
		state, resource string
		report          status.Report
		want            string
		counts          map[string]int
		overall, reason string
	}{
		"saved bundle":            {"Terminated", "Deleted", savedWeb(time.Time{}), "Deleted|Unknown|NotPresent|Terminated|", map[string]int{"Unknown": 1}, "NotPresent", "Terminated"},
		"states left behind":      {"Terminated", "Applied", savedWeb(time.Time{}), "Deleted|Unknown|NotPresent|Terminated|", map[string]int{"Unknown": 1}, "NotPresent", "Terminated"},
		"empty bundle":            {"Terminated", "Deleted", seen(), "Deleted|NotPresent|NotPresent|Terminated|", map[string]int{"NotPresent": 1}, "NotPresent", "Terminated"},
		"still there":             {"Terminated", "Deleted", seen(ready), "Deleted|Present|Terminating|StillPresent|", map[string]int{"Present": 1}, "Terminating", "StillPresent"},
		"lost":                    {"Terminated", "Deleted", lost(ready), "Deleted|Unknown|Unknown|ClusterUnreachable|", map[string]int{"Unknown": 1}, "Unknown", "ClusterUnreachable"},
		"terminating, unseen":     {"Terminating", "Applied", status.Report{}, "Applied|Unknown|Unknown|NotObserved|", map[string]int{"Unknown": 1}, "Terminating", "Deleting"},
		"terminating":             {"Terminating", "Applied", seen(ready), "Applied|Present|Terminating|Deleting|", map[string]int{"Present": 1}, "Terminating", "Deleting"},
		"asked for":               {"Instantiated", "Applied", seen(ready), "Applied|Present|Terminating|Deleting|", map[string]int{"Present": 1}, "Terminating", "Deleting"},
		"could not be terminated": {"TerminateFailed", "Failed", seen(ready), "Failed|Present|Failed|RsyncFailed|", map[string]int{"Present": 1}, "Failed", "RsyncFailed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := web(tt.state, tt.resource).input(t, ended...)
			in.Reports[berlin] = tt.report
			d := status.New(in, query(t, "output=small"))
			check(t, "resource", []string{"web/berlin/Deployment/web: " + tt.want}, words(d))
			check(t, "counts", tt.counts, d.ClusterStatus)
			check(t, "status", tt.state, d.Status)
			for _, h := range []*status.Health{d.Health, d.Apps[0].Health, d.Apps[0].Clusters[0].Health} {
				if h.State != tt.overall || h.Reason != tt.reason || h.Resources.Total != 0 {
					t.Errorf("health %+v %+v", h, h.Resources)
				}
			}
		})
	}
}

// TestStatesOfContextsThatEnd checks that the state of a context counts even without a history, which EMCO keeps elsewhere.
func TestStatesOfContextsThatEnd(t *testing.T) {
	for state, want := range map[string]string{"Terminating": "Terminating", "TerminateFailed": "Terminating", "Terminated": "Terminating", "Instantiated": "Ready", "Updating": "Ready"} {
		in := web(state, "Applied").input(t)
		in.Info.Actions = nil
		in.Reports[berlin] = seen(deployment(healthscope.Ready))
		check(t, state, want, status.New(in, query(t, "output=small")).Health.State)
		in.Info.Actions = []appcontext.Action{action(appcontext.ActionTerminated, "41", 60)}
		check(t, state+", after another context", want, status.New(in, query(t, "output=small")).Health.State)
	}
}

// TestFiltersThatMatchNothingTogether checks that the document names the filters and counts nothing, and that the health is Unknown.
func TestFiltersThatMatchNothingTogether(t *testing.T) {
	in := autumn(t, newID)
	for filters, unmatched := range map[string]status.Unmatched{
		"app=nope":                       {Apps: []string{"nope"}},
		"output=summary&app=nope":        {Apps: []string{"nope"}},
		"cluster=west%2Bnope&app=nope":   {Apps: []string{"nope"}, Clusters: []string{"west+nope"}},
		"cluster=west%2Bnope&resource=x": {Clusters: []string{"west+nope"}, Resources: []string{"x"}},
		"app=web&resource=cache-server":  {Apps: []string{"web"}, Resources: []string{"cache-server"}},
	} {
		for _, kind := range []string{"&type=rsync", "&type=cluster", "&type=all"} {
			d := status.New(in, query(t, filters+kind+"&health=true"))
			check(t, filters+kind+": unmatched", &unmatched, d.Unmatched)
			check(t, filters+kind, "Unknown NoMatch", d.Health.State+" "+d.Health.Reason)
			check(t, filters+kind+": apps and counts", 0, len(d.Apps)+len(d.RsyncStatus)+len(d.ClusterStatus))
		}
	}
	check(t, "one of two apps", "Ready", status.New(in, query(t, "app=nope&app=web&health=true")).Health.State)
}

// TestBeforeAndAfterContexts covers a group that has not been instantiated yet, and groups whose context no longer exists.
func TestBeforeAndAfterContexts(t *testing.T) {
	created := action(appcontext.ActionCreated, "", 9000)
	view := func(id string, actions ...appcontext.Action) status.Input {
		return status.Input{Subject: group, View: appcontext.View{Info: appcontext.StateInfo{Actions: actions}, ContextID: id, AsOf: noon}, Now: noon}
	}
	tests := map[string]struct {
		in        status.Input
		state     string
		reason    string
		unmatched *status.Unmatched
	}{
		"never instantiated": {view("", created), "NotPresent", "NotInstantiated", nil},
		"terminated":         {view("42", created, action(appcontext.ActionInstantiated, "42", 60), action(appcontext.ActionTerminated, "42", 50)), "NotPresent", "Terminated", &status.Unmatched{Instance: "42"}},
		"gone":               {view("42", created, action(appcontext.ActionInstantiated, "42", 60)), "Unknown", "ContextGone", &status.Unmatched{Instance: "42"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.in.Contents = status.Decode(tt.in.View, nil)
			check(t, "places", 0, len(tt.in.Contents.Expected(tt.in.Subject, query(t, "type=all"))))
			d := status.New(tt.in, query(t, "output=small"))
			if d.Status != "" || d.Apps != nil || d.RsyncStatus != nil || d.ClusterStatus != nil || len(d.State.Actions) != len(tt.in.Info.Actions) {
				t.Errorf("document %s", wire(t, d))
			}
			check(t, "unmatched", tt.unmatched, d.Unmatched)
			check(t, "state", tt.state+" "+tt.reason, d.Health.State+" "+d.Health.Reason)
		})
	}
}

// TestAGroupWithoutHistory checks that the document of a group without a history lists the known contexts, and reports the history as
// unknown, not as empty.
func TestAGroupWithoutHistory(t *testing.T) {
	in := web("Instantiated", "Applied").input(t)
	in.Info.Actions = nil
	if got := wire(t, status.New(in, query(t, "output=summary"))); strings.Contains(got, `"Actions"`) || !strings.Contains(got, `"state":{"Unknown":"no history of it is kept`) {
		t.Errorf("document %s", got)
	}
	check(t, "instances", []string{"42"}, status.New(in, query(t, "instance")).Instances)
	in.Contexts = nil
	in.Info.Actions = []appcontext.Action{action(appcontext.ActionInstantiated, "41", 9), action(appcontext.ActionTerminated, "41", 8), action(appcontext.ActionInstantiated, "42", 7)}
	check(t, "instances of the history", []string{"41", "42"}, status.New(in, query(t, "instance")).Instances)
	in.Info.Actions = nil
	if got := wire(t, status.New(in, query(t, "instance"))); !strings.Contains(got, `"instances":[]`) {
		t.Errorf("document %s", got)
	}
}

// TestAnUpdatedGroup checks that the newest context holds the expected resources, and the first context their states.
func TestAnUpdatedGroup(t *testing.T) {
	first := edge("Instantiated", "old+Pod", object("v1", "Pod", "old"), "Applied", "web+Pod", object("v1", "Pod", "web"), "Applied", "new+Pod", "nil", "Failed").bundle("web", "west+berlin", `{"podStatuses":[]}`)
	newest := newKeys("43", "Updated").order("web").cluster("web", "west+berlin", "web+Pod", object("v1", "Pod", "web"), "Pending", "new+Pod", object("v1", "Pod", "new"), "", "later+Pod", object("v1", "Pod", "later"), "").
		cluster("web", "west+bonn", "web+Pod", object("v1", "Pod", "web"), "Applied")
	newest["/context/43/statusappctxid/"] = `"42"`
	in := newest.input(t)
	in.StatusContext = first.snapshot(t)
	in.Contents = status.Decode(in.View, nil)
	d := status.New(in, query(t, ""))
	check(t, "status", "Updated", d.Status)
	check(t, "resources", []string{"web/berlin/Pod/later: Pending|", "web/berlin/Pod/new: Failed|", "web/berlin/Pod/web: Applied|", "web/bonn/Pod/web: Pending|"}, words(d))
	want := []status.Expected{
		{AppInCluster: berlin, BundleName: "42-web", Saved: "/context/42/app/web/cluster/west+berlin/status/", SavedRevision: 7},
		{AppInCluster: status.AppInCluster{App: "web", Cluster: "west+bonn"}, BundleName: "42-web"},
	}
	check(t, "expected", want, in.Contents.Expected(group, query(t, "type=cluster")))
	check(t, "expected of rsync", 0, len(in.Contents.Expected(group, query(t, "type=rsync"))))
	check(t, "expected elsewhere", 0, len(in.Contents.Expected(group, query(t, "type=cluster&cluster=west%2Bulm"))))
	in.StatusContext = nil
	in.Contents = status.Decode(in.View, nil)
	d = status.New(in, query(t, ""))
	check(t, "without the first context", []string{"web/berlin/Pod/later: Pending|", "web/berlin/Pod/new: Pending|", "web/berlin/Pod/web: Pending|", "web/bonn/Pod/web: Applied|"}, words(d))
	check(t, "problems", []string{`the context that keeps the states is not there any more: states are those of context "43" itself`}, d.Problems)
}

// TestWhatIsUnchangedIsNotParsedAgain checks that Decode parses only the objects and saved bundles that have changed.
func TestWhatIsUnchangedIsNotParsedAgain(t *testing.T) {
	k := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Pending").bundle("web", "west+berlin", "{}")
	before := k.input(t)
	saved := before.Contents.SavedBundle(berlin, nil)
	k.cluster("web", "west+berlin", "web+Pod", object("acme.example/v2", "Pod", "web"), "Applied")
	after := k.input(t)
	same := after.View // Decode assumes that a body with the same revision is the same.
	gvk := func(c *status.Contents) status.Resource {
		in := after
		in.Contents = c
		return status.New(in, query(t, "")).Apps[0].Clusters[0].Resources[0]
	}
	check(t, "same revision", status.Resource{GVK: status.GVK{Version: "v1", Kind: "Pod"}, Name: "web", RsyncStatus: "Applied"}, gvk(status.Decode(same, before.Contents)))
	check(t, "same revision of the bundle", true, status.Decode(same, before.Contents).SavedBundle(berlin, nil) == saved)
	values := map[string][]byte{}
	for h, v := range after.Context.All() {
		values[string(h)] = v
	}
	newer, err := appcontext.NewSnapshot(8, values)
	noError(t, err)
	same.Context, same.StatusContext = newer, newer
	check(t, "next revision", status.Resource{GVK: status.GVK{Group: "acme.example", Version: "v2", Kind: "Pod"}, Name: "web", RsyncStatus: "Applied"}, gvk(status.Decode(same, before.Contents)))
	check(t, "next revision of the bundle", false, status.Decode(same, before.Contents).SavedBundle(berlin, nil) == saved)
}

// TestWhatCannotBeReadIsNamed checks that the document names what cannot be read, and omits no resource.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	k := edge("Instantiated",
		"broken+Pod", "a: b: c: top-secret", "Applied",
		"odd+Pod", object("v1", "Pod", "odd"), "",
		"name+less+x", object("v1", "Service", "nameless"), "Applied",
	).cluster("web", "stray", "web+Pod", object("v1", "Pod", "web"), "Applied")
	k["/context/42/app/web/cluster/west+berlin/resource/odd+Pod/status/"] = `{"Status":`
	k["/context/42/status/"] = "top-secret"
	d := status.New(k.input(t), query(t, ""))
	check(t, "resources", []string{"web/stray/Pod/web: Applied|", "web/berlin/Pod/broken: Applied|", "web/berlin/Service/name+less+x: Applied|", "web/berlin/Pod/odd: Unknown|"}, words(d))
	check(t, "counts", map[string]int{"Applied": 3, "Unknown": 1}, d.RsyncStatus)
	check(t, "problems", []string{
		`the name of cluster "stray" at "/context/42/app/web/cluster/stray/" is not <provider>+<cluster>`,
		`the name of resource "name+less+x" at "/context/42/app/web/cluster/west+berlin/resource/name+less+x/" is not <name>+<Kind>`,
		`the object at "/context/42/app/web/cluster/west+berlin/resource/broken+Pod/" cannot be read`,
		`the value at "/context/42/app/web/cluster/west+berlin/resource/odd+Pod/status/" cannot be read`,
		`the value at "/context/42/status/" cannot be read`,
	}, d.Problems)
}

func TestProblemsAreBounded(t *testing.T) {
	var resources []string
	for i := range 50 {
		resources = append(resources, "r"+strings.Repeat("x", i)+"+Pod", "{", "Applied")
	}
	d := status.New(edge("Instantiated", resources...).input(t), query(t, ""))
	if len(d.Problems) != 20 || d.Problems[19] != "31 more" {
		t.Errorf("%d problems, the last %q", len(d.Problems), d.Problems[len(d.Problems)-1])
	}
}

// TestDetailHidesSecrets checks that objects are redacted, from every source.
func TestDetailHidesSecrets(t *testing.T) {
	const canary = "c4n4ry"
	secret := object("v1", "Secret", "key") + "  annotations:\n    note: <&>\n    kubectl.kubernetes.io/last-applied-configuration: '{\"data\":{\"key\":\"" + canary + "\"}}'\nstringData:\n  key: " + canary + "\n"
	pod := object("v1", "Pod", "web") + "spec:\n  containers:\n  - name: web\n    env:\n    - {name: PASSWORD, value: " + canary + "}\n"
	bundle := `{"secretStatuses":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"key","namespace":"store","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"key\":\"` + canary + `\"}}"}},"data":{"key":"` + canary + `"}}],
"podStatuses":[{"metadata":{"name":"web","namespace":"store"},"spec":{"containers":[{"name":"web","env":[{"name":"PASSWORD","value":"` + canary + `"}]}]}}],
"resourceStatuses":[{"group":"acme.example","version":"v1","kind":"Gadget","namespace":"store","name":"g","res":"` + base64JSON(map[string]any{"spec": map[string]any{"env": []any{map[string]any{"name": "P", "value": canary}}}}) + `"}]}`
	in := edge("Instantiated", "key+Secret", secret, "Applied", "web+Pod", pod, "Applied", "g+Gadget", object("acme.example/v1", "Gadget", "g"), "Applied").bundle("web", "west+berlin", bundle).input(t)
	live(&in)
	for _, raw := range []string{"output=rsync", "output=detail&type=cluster", "output=full"} {
		d := status.New(in, query(t, raw))
		text := wire(t, d)
		if strings.Contains(text, canary) {
			t.Errorf("%s shows a secret: %s", raw, text)
		}
		if raw == "output=rsync" && !strings.Contains(text, "<&>") {
			t.Errorf("%s does not show what is no secret as it is: %s", raw, text)
		}
		for _, r := range d.Apps[0].Clusters[0].Resources {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := json.Unmarshal(r.Detail, &object); err != nil || object.Kind != r.GVK.Kind || object.Metadata.Name != r.Name {
				t.Errorf("%s: the detail of %s/%s is %s", raw, r.GVK.Kind, r.Name, r.Detail)
			}
		}
	}
}

// TestADocumentOfAClusterShowsNoOther checks that a user who may read the network intents of a cluster sees nothing else of their
// context: not in lists, counts, objects or problems.
func TestADocumentOfAClusterShowsNoOther(t *testing.T) {
	network := func(name string) string { return object("k8s.plugin.opnfv.org/v1alpha1", "Network", name) }
	k := newKeys("42", "Instantiated").order("network-intents", "web").
		cluster("network-intents", "west+berlin", "own+Network", network("own"), "Applied").
		cluster("network-intents", "west+bonn", "foreign+Network", network("foreign"), "Applied", "foreign-broken+Network", "{", "Applied").
		cluster("web", "west+berlin", "foreign-web+Pod", object("v1", "Pod", "foreign-web"), "Applied")
	in := k.input(t)
	in.Subject = appcontext.ClusterRef("west", "berlin")
	place := status.AppInCluster{App: "network-intents", Cluster: "west+berlin"}
	in.Reports = map[status.AppInCluster]status.Report{
		place: seen(member("west+berlin", "k8s.plugin.opnfv.org", "Network", "own", healthscope.Ready)),
		{App: "network-intents", Cluster: "west+bonn"}: seen(member("west+bonn", "", "Pod", "foreign-pod", healthscope.Failed)),
		{App: "web", Cluster: "west+berlin"}:           seen(member("west+berlin", "", "Pod", "foreign-web", healthscope.Failed)),
	}
	for _, raw := range []string{"", "output=rsync", "output=full", "output=small", "type=cluster"} {
		d := status.New(in, query(t, raw))
		check(t, raw+": apps and resources", 1, len(words(d)))
		if text := wire(t, d); strings.Contains(text, "foreign") || strings.Contains(text, "bonn") || !strings.Contains(text, `"name":"own"`) {
			t.Errorf("%s: %s", raw, text)
		}
	}
	check(t, "counts", map[string]int{"Applied": 1}, status.New(in, query(t, "output=summary")).RsyncStatus)
	check(t, "health", "Ready", status.New(in, query(t, "output=small")).Health.State)
	other := status.New(in, query(t, "output=full&cluster=west%2Bbonn"))
	check(t, "apps with the other's filter", 0, len(other.Apps))
	check(t, "the filter", &status.Unmatched{Clusters: []string{"west+bonn"}}, other.Unmatched)
	expected := in.Contents.Expected(in.Subject, query(t, "type=all"))
	check(t, "places that are looked at", []status.Expected{{AppInCluster: place, BundleName: "42-network-intents"}}, expected)
}
