package recorder

import (
	"testing"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// moment is a view in which something happens while a bundle is looked for.
type moment struct {
	complete, completeThen bool
	bundle                 *fleet.Bundle
}

func (m *moment) State(string) (fleet.ClusterState, bool) { return fleet.ClusterState{}, true }

func (m *moment) CompleteFor(string, string) bool { return m.complete }

func (m *moment) LabelledIn(string, string, string) []*fleet.Bundle {
	m.complete = m.completeThen
	if m.bundle == nil {
		return nil
	}
	return []*fleet.Bundle{m.bundle}
}

// TestWhatIsNotSeenForAMomentIsNotRemoved has the namespaces that are read become fewer, and more, while a bundle that is saved is looked for.
func TestWhatIsNotSeenForAMomentIsNotRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view moment
		want step
	}{
		"all is known, and the bundle is there": {moment{complete: true, completeThen: true, bundle: seen("1")}, stay},
		"all is known, and the bundle is gone":  {moment{complete: true, completeThen: true}, remove},
		"its namespace is not read any more":    {moment{complete: true, completeThen: false}, stay},
		"its namespace has come to be read":     {moment{complete: false, completeThen: true}, stay},
	} {
		stored := ours
		stored.Place = appcontext.Place{ContextID: "1", App: "a", Cluster: seen("1").Cluster}
		s := situation{stored: stored, hub: "us", now: begin}
		s.look(&c.view)
		if got := decide(s).step; got != c.want {
			t.Errorf("%s: step %d, want %d", name, got, c.want)
		}
	}
}
