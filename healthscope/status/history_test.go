package status_test

import (
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestAMissingHistoryIsNotAnEmptyOne checks that, without recorded actions, a document reports the history as unknown, and not as an
// empty list of actions.
func TestAMissingHistoryIsNotAnEmptyOne(t *testing.T) {
	in := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Applied").input(t, []appcontext.Action{}...)
	in.Info.Actions = nil
	text := wire(t, status.New(in, query(t, "output=summary")))
	if strings.Contains(text, `"Actions"`) || !strings.Contains(text, `"state":{"Unknown":"no history of it is kept`) {
		t.Errorf("document %s", text)
	}
}

// TestTheCompositeProfile checks that the document has the composite profile when the context's metadata has it.
func TestTheCompositeProfile(t *testing.T) {
	k := edge("Instantiated", "web+Pod", object("v1", "Pod", "web"), "Applied")
	check(t, "without", false, strings.Contains(wire(t, status.New(k.input(t), query(t, ""))), "composite-profile-name"))
	k["/context/42/meta/"] = `{"Project":"retail","CompositeApp":"shop","Version":"v2","DeploymentIntentGroup":"autumn","CompositeProfile":"small"}`
	check(t, "with", true, strings.Contains(wire(t, status.New(k.input(t), query(t, ""))), `"composite-app-version":"v2","composite-profile-name":"small","name":"autumn"`))
}
