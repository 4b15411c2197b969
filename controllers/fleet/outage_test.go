package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// TestOutageOfTheHubsOwnCluster: during an outage the state of the hub's own cluster stays unchanged for readers that write.
// Outage reports the outage for readers that write nothing.
func TestOutageOfTheHubsOwnCluster(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]weather{"dead": {dead: true}, "black": {black: true}} {
		s := newSimulation(true).run(time.Minute, weather{})
		lastContact := s.liveness.lastContact
		v := openView("hub", "edge")
		key := keyOf("hub", "1-web")
		v.put(key, own(key))
		look := func() (ClusterState, bool) {
			state, _ := v.State("hub")
			state.outage = s.liveness.assess(s.now).outage
			v.setState(state)
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

// checkAsBefore asserts that the hub's own cluster is unchanged for all readers that write.
func checkAsBefore(t *testing.T, v *View, key BundleKey) {
	t.Helper()
	if state, _ := v.State(key.Cluster); state.Reachability != Connected || v.Bundle(key).Stale {
		t.Errorf("the hub is %+v", state)
	}
}

// TestNeverSyncedClusters: a cluster is unread until it has been read once, for any states in between.
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
