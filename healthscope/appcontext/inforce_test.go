package appcontext_test

import (
	"testing"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// step is a write of EMCO. It stores a value at a key below a context. Steps are in the order of rsync's writes.
type step struct{ id, below, value string }

// begun returns the writes with which EMCO's orchestrator creates a context. of is the id of the context that holds its status,
// if it is another one.
func begun(id, of string) []step {
	steps := []step{
		{id, "", `"` + id + `"`},
		{id, "meta/", `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1","DeploymentIntentGroup":"autumn"}`},
	}
	if of != "" {
		steps = append(steps, step{id, "statusappctxid/", `"` + of + `"`})
	}
	return steps
}

func says(id, state string) step { return step{id, "status/", `{"Status":"` + state + `"}`} }

// TestContextInForceIsFoundWithoutHistory asserts that states are sufficient to find the context for which EMCO's rsync works.
// EMCO stores no history in etcd. The states were recorded from an instantiation, an update and a rollback.
func TestContextInForceIsFoundWithoutHistory(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	client := rawClient(t, etcd.Endpoint())
	cache := runCache(t, store, appcontext.CacheOptions{})
	subject := appcontext.GroupRef("retail", "shop", "v2", "autumn")
	for _, stage := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"made", begun("90", ""), "90"},
		{"begun", []step{says("90", "Created"), says("90", "Instantiating"), says("90", "Instantiated")}, "90"},
		{"an update was made, and nothing done with it", begun("20", "90"), "90"},
		{"the update is created", []step{says("20", "Created")}, "90"},
		{"the update begins", []step{says("20", "Instantiating")}, "20"},
		{"the old one is taken away", []step{says("90", "Updating"), says("20", "Instantiated"), says("90", "Updated")}, "20"},
		{"a rollback begins", []step{says("90", "Instantiating")}, "90"},
		{"the update is taken away", []step{says("90", "Instantiated"), says("20", "Updating")}, "90"},
		{"rolled back", []step{says("20", "Updated")}, "90"},
		{"not all could be taken away", []step{says("20", "UpdatedFailed")}, "90"},
		{"a second update is being made", begun("50", "90"), "90"},
		{"terminated", []step{says("90", "Terminating"), says("90", "Terminated")}, "90"},
	} {
		for _, s := range stage.steps {
			if _, err := client.Put(t.Context(), "/context/"+s.id+"/"+s.below, s.value); err != nil {
				t.Fatal(err)
			}
		}
		if got := must(store.View(t.Context(), subject, ""))(t).ContextID; got != stage.want {
			t.Errorf("%s: the store has context %q in force, want %q", stage.name, got, stage.want)
		}
		view, err := viewSince(t, cache, subject, revisionOf(t, client))
		if err != nil || view.ContextID != stage.want {
			t.Errorf("%s: the cache has context %q in force, want %q (%v)", stage.name, view.ContextID, stage.want, err)
		}
	}
}
