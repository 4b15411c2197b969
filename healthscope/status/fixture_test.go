package status_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// noon is the current time in the tests.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// keys holds the keys and raw values of one context in etcd, in EMCO's layout.
type keys map[string]string

// quoted returns a string as EMCO stores it.
func quoted(text string) string { return marshal(text) }

func marshal(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// noError fails the test if a call has failed.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newKeys returns the keys of a context in a state, without apps.
func newKeys(id, state string) keys {
	root := "/context/" + id + "/"
	return keys{
		root:                             quoted(id),
		root + "meta/":                   `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1","DeploymentIntentGroup":"autumn","Namespace":"store","Level":"0","ChildContextIDs":null}`,
		root + "status/":                 `{"Status":"` + state + `"}`,
		root + "stopflag/":               "false",
		root + "app/instruction/order/":  "", // Set by order.
		root + "rsync/state/Irrelevant/": "[]",
	}
}

func (k keys) root() string {
	for key := range k {
		return strings.Join(strings.SplitN(key, "/", 4)[:3], "/") + "/"
	}
	return ""
}

// order sets the order of the apps.
func (k keys) order(apps ...string) keys {
	k[k.root()+"app/instruction/order/"] = quoted(marshal(map[string][]string{"apporder": apps}))
	return k
}

// cluster adds a cluster to an app. resources holds the name+Kind, the body and the state of each resource in turn.
func (k keys) cluster(app, cluster string, resources ...string) keys {
	at := k.root() + "app/" + app + "/"
	k[at] = quoted(app)
	at += "cluster/" + cluster + "/"
	k[at] = quoted(cluster)
	k[at+"readystatus/"] = `"Available"`
	var names []string
	for i := 0; i < len(resources); i += 3 {
		names = append([]string{resources[i]}, names...) // This order differs from that of the names.
		k[at+"resource/"+resources[i]+"/"] = quoted(resources[i+1])
		if resources[i+2] != "" {
			k[at+"resource/"+resources[i]+"/status/"] = `{"Status":"` + resources[i+2] + `"}`
		}
	}
	k[at+"resource/instruction/order/"] = quoted(marshal(map[string][]string{"resorder": names}))
	return k
}

// bundle saves the status of a bundle, as EMCO's rsync does.
func (k keys) bundle(app, cluster, text string) keys {
	k[k.root()+"app/"+app+"/cluster/"+cluster+"/status/"] = quoted(text)
	return k
}

func (k keys) snapshot(t testing.TB) *appcontext.Snapshot {
	t.Helper()
	values := map[string][]byte{}
	for key, value := range k {
		values[key] = []byte(value)
	}
	s, err := appcontext.NewSnapshot(7, values)
	noError(t, err)
	return s
}

// action returns an action of a history, the given number of seconds before noon.
func action(state appcontext.ActionState, id string, before int) appcontext.Action {
	return appcontext.Action{State: state, ContextID: id, Time: noon.Add(-time.Duration(before) * time.Second)}
}

// group is the deployment intent group of the tests.
var group = appcontext.GroupRef("retail", "shop", "v2", "autumn")

// input returns the input for a context that is its own status context.
func (k keys) input(t testing.TB, actions ...appcontext.Action) status.Input {
	t.Helper()
	s := k.snapshot(t)
	if actions == nil {
		actions = []appcontext.Action{action(appcontext.ActionInstantiated, s.ID(), 7200)}
	}
	view := appcontext.View{
		Revision: 7, Info: appcontext.StateInfo{StatusContextID: s.ID(), Actions: actions}, Contexts: []string{s.ID()},
		ContextID: s.ID(), Context: s, StatusContext: s, AsOf: noon,
	}
	return status.Input{
		Subject: group, View: view, Contents: status.Decode(view, nil), Reports: map[status.AppInCluster]status.Report{},
		Policy: healthscope.DefaultPolicy(), Now: noon,
	}
}

// object returns a Kubernetes object in YAML.
func object(apiVersion, kind, name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", apiVersion, kind, name)
}

// edge returns the keys of a context with one app in one cluster.
func edge(state string, resources ...string) keys {
	return newKeys("42", state).order("web").cluster("web", "west+berlin", resources...)
}

var berlin = status.AppInCluster{App: "web", Cluster: "west+berlin"}

// web returns the keys of a context with a Deployment in one cluster, and the state that rsync gives it.
func web(state, rsync string) keys {
	return edge(state, "web+Deployment", object("apps/v1", "Deployment", "web"), rsync)
}

// deployment returns the judged Deployment of web.
func deployment(state healthscope.State) healthscope.Member {
	return member("west+berlin", "apps", "Deployment", "web", state)
}

// member returns a judged object.
func member(cluster, group, kind, name string, state healthscope.State) healthscope.Member {
	r := healthscope.Result{Key: healthscope.Key{Cluster: cluster, Group: group, Kind: kind, Namespace: "store", Name: name}, Version: "v1", State: state, Since: noon.Add(-time.Hour)}
	return healthscope.Judge([]healthscope.Result{r}, healthscope.Policy{}, noon).Members[0]
}

// seen returns a report of a bundle that the hub sees.
func seen(members ...healthscope.Member) status.Report {
	return status.Report{Members: members, Observed: true, LastSeen: noon}
}

// lost returns a report of a bundle in an unreachable cluster.
func lost(members ...healthscope.Member) status.Report {
	return status.Report{
		Members: healthscope.MarkUnreachable(members, healthscope.ReasonClusterUnreachable, "no answer", noon.Add(-time.Minute)), Observed: true,
		Unreachable: true, Reason: healthscope.ReasonClusterUnreachable, Message: "no answer", LastSeen: noon.Add(-time.Minute),
	}
}

// savedWeb returns a report of a bundle that was saved in the context at a time, with the Deployment of web, which is Ready.
func savedWeb(lastSeen time.Time) status.Report {
	const text = `{"deploymentStatuses":[{"metadata":{"name":"web","namespace":"store"},"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`
	return status.SavedReport(status.DecodeBundle("west+berlin", text, nil), healthscope.DefaultPolicy(), lastSeen, noon)
}

// since returns the time that is the given duration before noon, as it is served.
func since(before time.Duration) string { return noon.Add(-before).Format(time.RFC3339) }

// query parses a query.
func query(t testing.TB, raw string) status.Query {
	t.Helper()
	q, err := parseQuery(raw)
	noError(t, err)
	return q
}

// wire returns a document in JSON.
func wire(t testing.TB, document any) string {
	t.Helper()
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	noError(t, e.Encode(document))
	return text.String()
}

func base64JSON(value any) string { return base64.StdEncoding.EncodeToString([]byte(marshal(value))) }

func check[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// words returns the kind, name, rsync-status, cluster-status and, if it has it, the health of each resource of a document, by app and
// cluster, in the order of the document.
func words(d status.Document) (found []string) {
	each(d, func(a status.App, c status.Cluster, r status.Resource) {
		text := a.Name + "/" + c.Name + "/" + r.GVK.Kind + "/" + r.Name + ": " + r.RsyncStatus + "|" + string(r.ClusterStatus)
		if r.Health != nil {
			text += "|" + r.Health.State + "|" + r.Health.Reason + "|" + r.Health.CountsAs
		}
		found = append(found, text)
	})
	return found
}

// each calls visit for each resource of a document.
func each(d status.Document, visit func(a status.App, c status.Cluster, r status.Resource)) {
	for _, a := range d.Apps {
		for _, c := range a.Clusters {
			for _, r := range c.Resources {
				visit(a, c, r)
			}
		}
	}
}
