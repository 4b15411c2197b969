package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// The hub's own cluster stays as it was for all who write, and shows its outage to all who only read.
func TestOutageOfTheHubsOwnCluster(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]weather{"dead": {dead: true}, "black": {black: true}} {
		s := newSimulation(true).run(time.Minute, weather{})
		lastContact := s.liveness.lastContact
		v := openView("hub", "edge")
		key := keyOf("hub", "1-web")
		v.put(key, own(key))
		look := func() (ClusterState, bool) {
			v.setOutage(s.liveness.outage(s.now))
			checkAsBefore(t, v, key)
			return v.Outage()
		}
		_, early := look()
		s.run(probeInterval+s.liveness.timeout+probeGrace+time.Second, away)
		state, silent := look()
		if early || !silent || state.Reachability != Unreachable || state.Message == "" || state.LastSeen.Before(lastContact) || state.LastSeen.After(s.now) || !state.Local {
			t.Errorf("%s: %t, %+v", name, silent, state)
		}
		shown := v.Bundle(key).StaleIn(state)
		if got := shown.Members[0]; !shown.Stale || got.State != healthscope.Unknown || got.LastState != healthscope.Ready || got.Reason != healthscope.ReasonClusterUnreachable {
			t.Errorf("%s: the bundle is shown as %+v", name, got)
		}
		s.run(time.Minute, weather{})
		if state, silent := look(); silent {
			t.Errorf("%s: the outage does not end: %+v", name, state)
		}
	}
}

// checkAsBefore asserts that all who write see the hub's own cluster as it was.
func checkAsBefore(t *testing.T, v *View, key BundleKey) {
	t.Helper()
	if state, _ := v.State(key.Cluster); state.Reachability != Connected || v.Bundle(key).Stale {
		t.Errorf("the hub is %+v", state)
	}
}

// A cluster is unread until it has been read once, whatever its state is meanwhile.
func TestNeverSyncedClusters(t *testing.T) {
	t.Parallel()
	v := openView("hub", "edge2", "edge1")
	v.setState(ClusterState{Name: "edge2", Reachability: Unreachable})
	for _, tc := range []struct {
		read string
		left []string
	}{{"", []string{"edge1", "edge2", "hub"}}, {"hub", []string{"edge1", "edge2"}}, {"edge1", []string{"edge2"}}, {"edge2", nil}} {
		if state, ok := v.State(tc.read); ok && tc.read != "" {
			state.synced = true
			v.setState(state)
		}
		var got []string
		for _, s := range v.NeverSynced() {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, tc.left) {
			t.Errorf("after %q has been read: %q, want %q", tc.read, got, tc.left)
		}
	}
}
