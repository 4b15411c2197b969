package status_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

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

// TestDetailIsOfTheObjectThatIsJudged checks that, of two objects with one name in the lists of a bundle, the document shows the one whose
// health it shows.
func TestDetailIsOfTheObjectThatIsJudged(t *testing.T) {
	failed := base64JSON(map[string]any{"status": map[string]any{"phase": "Failed"}})
	in := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Applied").bundle("web", "west+berlin", `{"podStatuses":[{"metadata":{"name":"web","namespace":"store"},"status":{"phase":"Pending"}}],
"resourceStatuses":[{"version":"v1","kind":"Pod","namespace":"store","name":"web","res":"`+failed+`"}]}`).input(t)
	live(&in)
	r := status.New(in, query(t, "output=full")).Apps[0].Clusters[0].Resources[0]
	if r.Health.State != "Pending" || !strings.Contains(string(r.Detail), `"phase":"Pending"`) {
		t.Errorf("health %+v of %s", r.Health, r.Detail)
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
