package status_test

import (
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

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

// TestAPlaceholderOfItsOwnContextIsNamed checks that a resource without an object that belongs to the context itself is a problem.
func TestAPlaceholderOfItsOwnContextIsNamed(t *testing.T) {
	k := edge("Instantiated", "added+ConfigMap", "nil", "Applied")
	k["/context/42/app/web/cluster/west+berlin/resource/added+ConfigMap/reference/"] = `"42"`
	d := status.New(k.input(t), query(t, ""))
	check(t, "resources", []string{"web/berlin/ConfigMap/added: Applied|"}, words(d))
	check(t, "problems", []string{`the object at "/context/42/app/web/cluster/west+berlin/resource/added+ConfigMap/" cannot be read`}, d.Problems)
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
