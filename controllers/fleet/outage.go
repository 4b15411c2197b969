package fleet

import "time"

// outage is since when the hub's own API server does not answer, and why; zero while it does.
type outage struct {
	since time.Time
	cause string
}

// Outage returns the state that the hub's own cluster would have if it were another one, while its API server does not
// answer; false while it does. State does not show that, and the cluster's bundles stay as they are: what depends on them
// could be written only when the outage is over. Outage is for readers that write nothing.
func (v *View) Outage() (ClusterState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.outage.since.IsZero() {
		return ClusterState{}, false
	}
	state := v.clusters[v.cluster].now()
	state.Reachability, state.Message, state.unreadable = Unreachable, v.outage.cause, false
	state.Since, state.LastSeen = v.outage.since, v.outage.since
	return state, true
}

// setOutage stores whether the hub's own API server answers.
func (v *View) setOutage(s outage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.outage = s
}

// NeverSynced returns the states of the clusters of which nothing has been read since the hub started, sorted by name.
func (v *View) NeverSynced() []ClusterState {
	states := v.States()
	v.mu.RLock()
	defer v.mu.RUnlock()
	neverSynced := states[:0]
	for _, s := range states {
		if c := v.clusters[s.Name]; c != nil && c.reader == nil {
			neverSynced = append(neverSynced, s)
		}
	}
	return neverSynced
}
