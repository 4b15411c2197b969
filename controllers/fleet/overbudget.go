package fleet

import (
	"context"
	"time"
)

// Pauses before a cluster that was cut off is read again. They double while it is cut off again and again.
const (
	minCutOff = 5 * time.Minute
	maxCutOff = time.Hour
)

// over says how a cluster has been cut off.
type over struct {
	// exceeded is why, until the cluster is seen again.
	exceeded string
	// until is when it is read again; zero once that has begun.
	until time.Time
	// pause is how long it was cut off last.
	pause time.Duration
}

// during returns what is said of the cluster: that it is being read again is no better news than why it was cut off.
func (o *over) during(v verdict) verdict {
	switch {
	case o.exceeded == "" || v.reach == OverBudget:
	case v.reach == Connecting:
		return verdict{reach: OverBudget, message: o.exceeded + "; it is being read again"}
	default:
		o.exceeded = ""
	}
	return v
}

// cutOff notes that the cluster is cut off. One that was well for as long as the last pause begins anew.
func (o *over) cutOff(exceeded string, state ClusterState, now time.Time) {
	if state.Reachable() && now.Sub(state.Since) >= o.pause {
		o.pause = 0
	}
	o.pause = min(max(2*o.pause, minCutOff), maxCutOff)
	o.exceeded, o.until = exceeded, now.Add(o.pause)
}

// keepWithin cuts the cluster off that is over its budget, and reads it again after a pause.
func (m *member) keepWithin(ctx context.Context) {
	exceeded, drop := m.quota.status()
	now := m.hub.clock.Now()
	switch {
	case drop:
		m.keeper.clear(true)
		m.quota.dropped()
	case exceeded == "":
		return
	}
	switch {
	case m.over.until.IsZero():
		m.over.cutOff(exceeded, m.state, now)
		m.logger.Info("The cluster is cut off", "problem", exceeded, "for", m.over.pause.String())
		m.hangUp(m.current)
		m.hangUp(m.next)
		m.current, m.next, m.trouble = nil, nil, ""
		m.keeper.clear(false)
		if m.hub.options.Objects != nil {
			m.hub.options.Objects.Detach(m.name)
		}
	case !now.Before(m.over.until):
		m.reopen()
		m.begin(ctx, m.wish)
	}
}

// reopen lets the cluster be read again if it has been cut off.
func (m *member) reopen() {
	if !m.over.until.IsZero() {
		m.over.until = time.Time{}
		m.quota.reopen()
	}
}
