package fleet

import "time"

// silence is asked whether the hub's own API server answers: since when it does not, and why; zero while it does.
type silence func() (since time.Time, why string)

// Silence returns the state that the hub's own cluster would have if it were another one, while its API server does not
// answer; false while it does. State says nothing of that, and the cluster's bundles stay as they are: whoever writes to the
// API server would write about the outage when it is over. Silence is for those who only show what is known.
func (v *View) Silence() (ClusterState, bool) {
	v.mu.RLock()
	ask := v.silence
	v.mu.RUnlock()
	if ask == nil {
		return ClusterState{}, false
	}
	since, why := ask()
	if since.IsZero() {
		return ClusterState{}, false
	}
	state, _ := v.State(v.cluster)
	state.Reachability, state.Message, state.Since, state.LastSeen, state.blind = Unreachable, why, since, since, false
	return state, true
}

// listen says whom to ask whether the hub's own API server answers.
func (v *View) listen(to silence) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.silence = to
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

// silence is what is to be asked about the member of the hub's own cluster.
func (m *member) silence() (since time.Time, why string) {
	p := m.pulse.Load()
	if p == nil {
		return since, why
	}
	p.ask(func(l *liveness, now time.Time) {
		if v := l.judge(now); v.reach == Unreachable && !l.heard.IsZero() {
			since, why = l.lastSeen(Unreachable), v.message
		}
	})
	return since, why
}
