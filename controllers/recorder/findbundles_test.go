package recorder

import (
	"testing"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// changingView is a view whose completeness changes while a bundle is looked up.
type changingView struct {
	complete, completeThen bool
	bundle                 *fleet.Bundle
}

func (m *changingView) State(string) (fleet.ClusterState, bool) { return fleet.ClusterState{}, true }

func (m *changingView) CompleteFor(string, string) bool { return m.complete }

func (m *changingView) ListByLabelIn(string, string, string) []*fleet.Bundle {
	m.complete = m.completeThen
	if m.bundle == nil {
		return nil
	}
	return []*fleet.Bundle{m.bundle}
}

// TestFindBundlesWhileCompletenessChanges checks that a saved bundle is not removed if its namespace starts or stops being read during the
// lookup.
func TestFindBundlesWhileCompletenessChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view changingView
		want action
	}{
		"all is known, and the bundle is there": {changingView{complete: true, completeThen: true, bundle: bundleAt("1")}, actionNone},
		"all is known, and the bundle is gone":  {changingView{complete: true, completeThen: true}, actionRemove},
		"its namespace is not read any more":    {changingView{complete: true, completeThen: false}, actionNone},
		"its namespace has come to be read":     {changingView{complete: false, completeThen: true}, actionNone},
	} {
		stored := ours
		stored.Place = appcontext.AppInCluster{ContextID: "1", App: "a", Cluster: bundleAt("1").Cluster}
		s := input{stored: stored, hub: "us", now: begin}
		s.findBundles(&c.view)
		if got := decide(s).action; got != c.want {
			t.Errorf("%s: step %d, want %d", name, got, c.want)
		}
	}
}
