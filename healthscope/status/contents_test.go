package status_test

import (
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

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
		"added+ConfigMap", "nil", "Applied", // A placeholder, which belongs to this context.
		"odd+Pod", object("v1", "Pod", "odd"), "",
		"name+less+x", object("v1", "Service", "nameless"), "Applied",
	).cluster("web", "stray", "web+Pod", object("v1", "Pod", "web"), "Applied")
	k["/context/42/app/web/cluster/west+berlin/resource/odd+Pod/status/"] = `{"Status":`
	k["/context/42/app/web/cluster/west+berlin/resource/added+ConfigMap/reference/"] = `"42"`
	k["/context/42/status/"] = "top-secret"
	d := status.New(k.input(t), query(t, ""))
	check(t, "resources", []string{"web/stray/Pod/web: Applied|", "web/berlin/ConfigMap/added: Applied|", "web/berlin/Pod/broken: Applied|", "web/berlin/Service/name+less+x: Applied|", "web/berlin/Pod/odd: Unknown|"}, words(d))
	check(t, "counts", map[string]int{"Applied": 4, "Unknown": 1}, d.RsyncStatus)
	check(t, "problems", []string{
		`the name of cluster "stray" at "/context/42/app/web/cluster/stray/" is not <provider>+<cluster>`,
		`the name of resource "name+less+x" at "/context/42/app/web/cluster/west+berlin/resource/name+less+x/" is not <name>+<Kind>`,
		`the object at "/context/42/app/web/cluster/west+berlin/resource/added+ConfigMap/" cannot be read`,
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

// TestWhatAnAbandonedUpdateHasAddedIsNoPart checks that a resource which an abandoned update added is not part of the context that a
// rollback reuses. EMCO leaves the resource there without its object, with a reference to the context to which it belongs.
func TestWhatAnAbandonedUpdateHasAddedIsNoPart(t *testing.T) {
	k := edge("Instantiated",
		"web+Deployment", object("apps/v1", "Deployment", "web"), "Applied",
		"added+ConfigMap", "nil", "Deleted",
	)
	k["/context/42/app/web/cluster/west+berlin/resource/added+ConfigMap/reference/"] = `"43"`
	k.cluster("cache", "west+berlin", "cache+Deployment", "nil", "Deleted").bundle("cache", "west+berlin", `{"podStatuses":[{"metadata":{"name":"cache-0","namespace":"store"}}]}`)
	k["/context/42/app/cache/cluster/west+berlin/resource/cache+Deployment/reference/"] = `"43"`
	in := k.input(t)
	in.Reports[berlin] = seen(deployment(healthscope.Ready))
	d := status.New(in, query(t, "output=small"))
	check(t, "problems", nil, d.Problems)
	check(t, "resources", []string{"web/berlin/Deployment/web: Applied|Present|Ready||Ready"}, words(d))
	check(t, "counts", map[string]int{"Applied": 1}, d.RsyncStatus)
	check(t, "state", "Ready", d.Health.State)
	check(t, "places", 1, len(in.Contents.Expected(group, query(t, "type=cluster"))))
}

// TestAClusterThatRsyncCannotReach checks the state Retrying. EMCO's rsync records it for the cluster. The design requires it for each
// resource that rsync has not yet applied or deleted.
func TestAClusterThatRsyncCannotReach(t *testing.T) {
	resources := []string{
		"done+Pod", object("v1", "Pod", "done"), "Applied",
		"begun+Pod", object("v1", "Pod", "begun"), "Pending",
		"new+Pod", object("v1", "Pod", "new"), "",
		"refused+Pod", object("v1", "Pod", "refused"), "Failed",
		"gone+Pod", object("v1", "Pod", "gone"), "Deleted",
	}
	tests := map[string]struct {
		connectivity, stop string
		tries              bool
		want               map[string]int
	}{
		"Instantiating":     {`"Retrying"`, "false", true, map[string]int{"Applied": 1, "Retrying": 2, "Failed": 1, "Deleted": 1}},
		"Terminating":       {`"Retrying"`, "false", true, map[string]int{"Retrying": 3, "Failed": 1, "Deleted": 1}},
		"InstantiateFailed": {`"Retrying"`, "false", false, map[string]int{"Applied": 1, "Pending": 2, "Failed": 1, "Deleted": 1}},
		"Updating":          {`"Available"`, "false", false, map[string]int{"Applied": 1, "Pending": 2, "Failed": 1, "Deleted": 1}},
		"Updated":           {`"Retrying"`, "true", false, map[string]int{"Applied": 1, "Pending": 2, "Failed": 1, "Deleted": 1}},
	}
	for state, tt := range tests {
		t.Run(state, func(t *testing.T) {
			k := edge(state, resources...)
			k["/context/42/app/web/cluster/west+berlin/readystatus/"] = tt.connectivity
			k["/context/42/stopflag/"] = tt.stop
			k.cluster("web", "west+bonn", "web+Pod", object("v1", "Pod", "web"), "Applied")
			d := status.New(k.input(t), query(t, "cluster=west%2Bberlin"))
			check(t, "counts", tt.want, d.RsyncStatus)
			check(t, "connectivity", tt.tries, strings.Contains(wire(t, d), `"connectivity":"Retrying"`))
		})
	}
	k := edge("Instantiating", "web+Pod", object("v1", "Pod", "web"), "Pending")
	k["/context/42/app/web/cluster/west+berlin/readystatus/"] = `"Retrying"`
	in := k.input(t, action(appcontext.ActionInstantiated, "42", 30))
	d := status.New(in, query(t, "health=true"))
	check(t, "health", []string{"web/berlin/Pod/web: Retrying||Pending|RsyncRetrying|Pending"}, words(d))
	k["/context/42/app/web/cluster/west+berlin/readystatus/"] = `{`
	check(t, "problems", []string{`the value at "/context/42/app/web/cluster/west+berlin/readystatus/" cannot be read`}, status.New(k.input(t), query(t, "")).Problems)
}
