package status_test

import (
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// missing returns the required resources of the app web that are not in its bundles, as cluster/Kind/name.
func missing(required status.Requirements, bundles map[string][]healthscope.Member) []string {
	var all []string
	for _, key := range required.Missing("web", "store", bundles) {
		all = append(all, key.Cluster+"/"+key.Kind+"/"+key.Name)
	}
	return all
}

func TestAContextRequiresWhatRsyncHasDone(t *testing.T) {
	t.Parallel()
	k := edge("Instantiated",
		"web+Deployment", object("apps/v1", "Deployment", "web"), "Applied",
		"refused+Service", object("v1", "Service", "refused"), "Failed",
		"old+Deployment", object("extensions/v1beta1", "Deployment", "old"), "Applied",
		"own+ConfigMap", object("v1", "ConfigMap", "own")+"  namespace: store\n", "Applied",
		"elsewhere+ConfigMap", object("v1", "ConfigMap", "elsewhere")+"  namespace: other\n", "Applied",
		"waiting+Service", object("v1", "Service", "waiting"), "Pending",
		"new+Service", object("v1", "Service", "new"), "",
		"removed+Service", object("v1", "Service", "removed"), "Deleted",
		"unread+Service", "{", "Applied",
		"claim+PersistentVolumeClaim", object("v1", "PersistentVolumeClaim", "claim"), "Applied",
	).cluster("web", "west+bonn", "web+Deployment", object("apps/v1", "Deployment", "web"), "Applied").
		cluster("cache", "west+berlin", "cache+Pod", object("v1", "Pod", "cache"), "Applied")
	hook := "/context/42/app/web/cluster/west+berlin/resource/hook+Job/"
	k[hook], k[hook+"status/"] = quoted(object("batch/v1", "Job", "hook")), `{"Status":"Applied"}`
	old := member("west+berlin", "apps", "Deployment", "old", healthscope.Ready)
	required := k.input(t).Contents.Requirements(nil)
	check(t, "without bundles", []string{
		"west+berlin/ConfigMap/own", "west+berlin/Service/refused", "west+berlin/Deployment/web", "west+bonn/Deployment/web",
	}, missing(required, nil))
	volume := member("west+berlin", "", "PersistentVolumeClaim", "other", healthscope.Ready)
	check(t, "with bundles", []string{"west+berlin/ConfigMap/own", "west+berlin/PersistentVolumeClaim/claim", "west+berlin/Service/refused"}, missing(required, map[string][]healthscope.Member{
		"west+berlin": {old, volume, deployment(healthscope.Failed)},
		"west+bonn":   {member("west+bonn", "apps", "Deployment", "web", healthscope.Ready)},
	}))
	check(t, "equal to itself", true, required.Equal(k.input(t).Contents.Requirements(nil)))
	k[hook+"status/"] = `{"Status":"Failed"}`
	check(t, "equal when a hook has changed", true, required.Equal(k.input(t).Contents.Requirements(nil)))
	k["/context/42/app/web/cluster/west+bonn/resource/web+Deployment/status/"] = `{"Status":"Deleted"}`
	check(t, "equal when a resource is deleted", false, required.Equal(k.input(t).Contents.Requirements(nil)))
}

// A context requires nothing before rsync starts, nor after a user has requested its termination.
func TestWhichContextsRequireAnything(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"Created": false, "Instantiating": true, "Instantiated": true, "InstantiateFailed": true, "Updating": true, "Updated": true, "UpdatedFailed": true,
		"Terminating": false, "Terminated": false, "TerminateFailed": false,
	} {
		in := web(state, "Applied").input(t)
		check(t, state, want, len(missing(in.Contents.Requirements(nil), nil)) == 1)
		ended := []appcontext.Action{action(appcontext.ActionInstantiated, "42", 60), action(appcontext.ActionTerminated, "42", 1)}
		check(t, state+", and a user has ended it", 0, len(missing(in.Contents.Requirements(ended), nil)))
	}
	unordered := web("Instantiated", "Applied")
	unordered["/context/42/app/web/cluster/west+berlin/resource/instruction/order/"] = "{"
	check(t, "an order that cannot be read", 1, len(missing(unordered.input(t).Contents.Requirements(nil), nil)))
	none := web("", "Applied")
	delete(none, "/context/42/status/")
	check(t, "no state", 0, len(missing(none.input(t).Contents.Requirements(nil), nil)))
	check(t, "no context", 0, len(missing((*status.Contents)(nil).Requirements(nil), nil)))
}
