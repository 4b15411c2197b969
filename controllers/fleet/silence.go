package fleet

import "time"

// silence is since when the hub's own API server does not answer, and why; zero while it does.
type silence struct {
	since time.Time
	why   string
}

// Silence returns the state that the hub's own cluster would have if it were another one, while its API server does not
// answer; false while it does. State says nothing of that, and the cluster's bundles stay as they are: whoever writes to the
// API server would write about the outage when it is over. Silence is for those who only show what is known.
func (v *View) Silence() (ClusterState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.silence.since.IsZero() {
		return ClusterState{}, false
	}
	state := v.clusters[v.cluster].now()
	state.Reachability, state.Message, state.blind = Unreachable, v.silence.why, false
	state.Since, state.LastSeen = v.silence.since, v.silence.since
	return state, true
}

// setSilence stores whether the hub's own API server answers.
func (v *View) setSilence(s silence) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.silence = s
}

// Unseen returns the bundle as it is shown of a cluster in that state, whose own is not to be relied on.
func (b *Bundle) Unseen(s ClusterState) *Bundle { return b.lost(&s) }

// Unread returns the states of the clusters of which nothing has been read since the hub started, sorted by name: nobody
// knows what there is.
func (v *View) Unread() []ClusterState {
	states := v.States()
	v.mu.RLock()
	defer v.mu.RUnlock()
	unread := states[:0]
	for _, s := range states {
		if c := v.clusters[s.Name]; c != nil && c.reader == nil {
			unread = append(unread, s)
		}
	}
	return unread
}
