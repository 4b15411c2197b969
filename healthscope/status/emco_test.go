package status_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// spring returns the input for a group whose context EMCO 22.12 has written: one app in two clusters, one of which has reported.
func spring(t *testing.T) status.Input {
	t.Helper()
	const id = "3318840275619904417"
	when := at(t, "2026-04-14T07:20:05.312Z")
	actions := []appcontext.Action{{State: appcontext.ActionCreated, Time: when}, {State: "Approved", Time: when}, {State: appcontext.ActionInstantiated, ContextID: id, Time: when, Revision: 1}}
	in := stored(t, "emco/context.json").input(t, actions...)
	in.Subject = appcontext.GroupRef("retail", "shop", "v2", "spring")
	reportSaved(&in)
	return in
}

// reportSaved sets reports of the bundles that are saved in the context, for clusters that the hub does not see.
func reportSaved(in *status.Input) {
	for _, e := range in.Contents.Expected(in.Subject, status.Query{Type: status.TypeAll}) {
		in.Reports[e.AppInCluster] = status.SavedReport(in.Contents.SavedBundle(e.AppInCluster, nil), healthscope.DefaultPolicy(), noon, noon)
	}
}

// answer returns the response to a query in the dialect of EMCO 22.12.
func answer(t *testing.T, in status.Input, raw string) any {
	t.Helper()
	made, err := status.Answer(in, query(t, "dialect=22.12&"+raw))
	noError(t, err)
	return made
}

// TestAnswersAreThoseOfEMCO compares documents with the responses of EMCO 22.12 for the same context, byte for byte except for blanks.
func TestAnswersAreThoseOfEMCO(t *testing.T) {
	var answers map[string]json.RawMessage
	noError(t, json.Unmarshal(read(t, "emco/answers.json"), &answers))
	for raw, text := range answers {
		t.Run(raw, func(t *testing.T) {
			var want bytes.Buffer
			noError(t, json.Compact(&want, text))
			want.WriteByte('\n')
			if diff := cmp.Diff(want.String(), wire(t, answer(t, spring(t), raw))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// emcoGroup returns the document of a group in the dialect of EMCO 22.12.
func emcoGroup(t *testing.T, in status.Input, raw string) status.EMCOGroup {
	t.Helper()
	g, ok := answer(t, in, raw).(status.EMCOGroup)
	if !ok {
		t.Fatalf("%s is not answered with the status of a group", raw)
	}
	return g
}

// TestAnswersDifferFromThoseOfEMCO covers the cases in which EMCO reports Ready for what is not known to be Ready.
func TestAnswersDifferFromThoseOfEMCO(t *testing.T) {
	t.Run("filters that match nothing", func(t *testing.T) {
		check(t, "readyStatus", "NotReady", emcoGroup(t, spring(t), "status=ready&resource=other").ReadyStatus)
	})
	t.Run("after the termination", func(t *testing.T) {
		k := stored(t, "emco/context.json")
		for key, value := range k {
			k[key] = strings.ReplaceAll(strings.ReplaceAll(value, `{"Status":"Instantiated"}`, `{"Status":"Terminated"}`), `{"Status":"Applied"}`, `{"Status":"Deleted"}`)
		}
		in := k.input(t, action(appcontext.ActionInstantiated, "3318840275619904417", 60), action(appcontext.ActionTerminated, "3318840275619904417", 30))
		reportSaved(&in)
		deployed, ready := emcoGroup(t, in, "status=deployed"), emcoGroup(t, in, "status=ready")
		check(t, "deployedStatus", "Terminated", deployed.DeployedStatus)
		check(t, "deployedCounts", map[string]int{"Deleted": 6}, deployed.DeployedCounts)
		check(t, "readyStatus", "NotReady", ready.ReadyStatus)
		check(t, "readyCounts", map[string]int{"NotPresent": 6}, ready.ReadyCounts)
	})
}

func TestConnectivityInTheWordsOfEMCO(t *testing.T) {
	for stored, want := range map[string]string{`"Available"`: "Available", `"Retrying"`: "Retrying", "": "Unknown"} {
		k := edge("Instantiating", "web+Pod", object("v1", "Pod", "web"), "Applied")
		const key = "/context/42/app/web/cluster/west+berlin/readystatus/"
		if k[key] = stored; stored == "" {
			delete(k, key)
		}
		check(t, "connectivity", want, emcoGroup(t, k.input(t), "status=deployed").Apps[0].Clusters[0].Connectivity)
		check(t, "readyStatus", want, emcoGroup(t, k.input(t), "").Apps[0].Clusters[0].ReadyStatus)
	}
}

func TestAnswersAboutOtherSubjectsInTheDialectOfEMCO(t *testing.T) {
	check(t, "apps are sorted", true, strings.Contains(wire(t, answer(t, shop(t, nil), "apps")), `"apps":["db","web"]`))
	in := network(t)
	text := wire(t, answer(t, in, "status=deployed"))
	for _, part := range []string{`{"name":"west+berlin","states":{"statusctxid":"` + networkID + `","actions":[`, `"deployedStatus":"Instantiated","deployedCounts":{`, `"cluster":{"clusterProvider":"west","cluster":"berlin","connectivity":"Unknown","resources":[{"GVK":`} {
		if !strings.Contains(text, part) {
			t.Errorf("the answer lacks %s:\n%s", part, text)
		}
	}
	if text := wire(t, answer(t, in, "status=ready&output=summary")); !strings.HasSuffix(text, `"cluster":{}}`+"\n") {
		t.Errorf("summary: %s", text)
	}
	if text := wire(t, answer(t, in, "type=cluster")); strings.Contains(text, `"readyStatus":"NotReady"`) {
		t.Errorf("EMCO has no readyStatus of a cluster with type=cluster: %s", text)
	}
	fresh := status.Input{Subject: group, View: appcontext.View{Info: appcontext.StateInfo{Actions: []appcontext.Action{action(appcontext.ActionCreated, "", 60)}}}, Now: noon}
	want := `{"project":"retail","compositeApp":"shop","compositeAppVersion":"v2","name":"autumn","states":{"statusctxid":"","actions":[{"state":"Created","instance":"","time":"2026-05-01T11:59:00Z","revision":0}]}}` + "\n"
	check(t, "before the first instantiation", want, wire(t, answer(t, fresh, "status=ready")))
	fresh.Info.Actions = nil
	if text := wire(t, answer(t, fresh, "")); !strings.Contains(text, `"actions":[]`) {
		t.Errorf("without a history: %s", text)
	}
	k := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Applied")
	k["/context/42/meta/"] = `{"ChildContextIDs":["7","8"],"CompositeProfile":"small"}`
	text = wire(t, answer(t, k.input(t), "output=summary"))
	if !strings.Contains(text, `"compositeProfile":"small"`) || !strings.HasSuffix(text, `"ChildContextIDs":["7","8"]}`+"\n") {
		t.Errorf("with children: %s", text)
	}
}

// TestDetailInTheDialectOfEMCO checks that the object in the context stands only for an object that is not in the cluster, and not for
// one that its bundle does not contain.
func TestDetailInTheDialectOfEMCO(t *testing.T) {
	in := edge("Instantiated", "gone+Pod", object("v1", "Pod", "gone"), "Applied", "web+Deployment", object("apps/v1", "Deployment", "web"), "Applied").input(t)
	in.Reports[berlin] = seen(deployment(healthscope.Ready), member("west+berlin", "", "Pod", "other", healthscope.Ready))
	got := map[string]bool{}
	for _, r := range emcoGroup(t, in, "status=ready&output=detail").Apps[0].Clusters[0].Resources {
		got[r.Name] = r.Detail != nil
	}
	check(t, "with detail", map[string]bool{"gone": true, "web": false, "other": false}, got)
}

// TestRefusalsInTheDialectOfEMCO checks that errors begin with EMCO's words, and then add details.
func TestRefusalsInTheDialectOfEMCO(t *testing.T) {
	for raw, want := range map[string]string{
		"type=all":              `Invalid query type: query parameter "type" with value "all" cannot be used; allowed: rsync, cluster`,
		"status=healthy":        `Invalid query status: query parameter "status" with value "healthy" cannot be used; allowed: deployed, ready`,
		"output=full":           `Invalid query output: query parameter "output" with value "full" cannot be used; allowed: all, summary, detail`,
		"instance":              `Invalid query instance: query parameter "instance" with value "" cannot be used; allowed: the id of a context`,
		"app=":                  `Invalid app query: query parameter "app"`,
		"cluster=bonn":          `Invalid cluster query: query parameter "cluster" with value "bonn"`,
		"resource=a%2Fb":        `Invalid resources query: query parameter "resource" with value "a/b"`,
		"health=true":           `query parameter "health" with value "true" is unknown; allowed: app, apps, cluster, clusters, dialect, instance, output, resource, resources, status, type`,
		"status=ready&status=x": `is given 2 times`,
	} {
		if _, err := parseQuery("dialect=22.12&" + raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if _, err := parseQuery("dialect=21.03"); err == nil || !strings.Contains(err.Error(), `"21.03" cannot be used; allowed: 22.12`) {
		t.Errorf("another dialect: %v", err)
	}
	for raw, want := range map[string]string{"app=nosuch": "Filter app nosuch not in list of apps for composite app shop", "resources&app=nosuch": "Filter app nosuch"} {
		if _, err := status.Answer(spring(t), query(t, "dialect=22.12&"+raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if _, err := status.Answer(network(t), query(t, "dialect=22.12&apps")); err == nil || !strings.Contains(err.Error(), "only for deployment intent groups") {
		t.Errorf("apps of a cluster: %v", err)
	}
	for _, raw := range []string{"app=store", "apps&app=nosuch"} { // EMCO does not read app beside apps.
		if _, err := status.Answer(spring(t), query(t, "dialect=22.12&"+raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := status.Answer(status.Input{Subject: group}, query(t, "dialect=22.12&app=nosuch")); err != nil {
		t.Errorf("before the first instantiation, the apps are not known: %v", err)
	}
}
