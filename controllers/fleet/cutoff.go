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

// cutOff says how a cluster has been cut off.
type cutOff struct {
	// exceeded is why, until the cluster is seen again.
	exceeded string
	// until is when it is read again; zero once that has begun.
	until time.Time
	// pause is how long it was cut off last.
	pause time.Duration
}

// during returns the assessment to show: while the cluster is being read again, it stays cut off.
func (o *cutOff) during(v assessment) assessment {
	switch {
	case o.exceeded == "" || v.reach == OverBudget:
	case v.reach == Connecting:
		return assessment{reach: OverBudget, message: o.exceeded + "; it is being read again"}
	default:
		o.exceeded = ""
	}
	return v
}

// begin notes that the cluster is cut off. The pause starts from the minimum again when the cluster was current for as long as the last one.
func (o *cutOff) begin(exceeded string, state ClusterState, now time.Time) {
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
		m.syncer.reset(true)
		m.quota.dropped()
	case exceeded == "":
		return
	}
	switch {
	case m.cutOff.until.IsZero():
		m.cutOff.begin(exceeded, m.state, now)
		m.logger.Info("Cluster cut off", "problem", exceeded, "for", m.cutOff.pause.String())
		m.disconnect(m.current)
		m.disconnect(m.next)
		m.current, m.next, m.rotationProblem = nil, nil, ""
		m.syncer.reset(false)
		if m.hub.options.Objects != nil {
			m.hub.options.Objects.Detach(m.name)
		}
	case !now.Before(m.cutOff.until):
		m.reopen()
		m.begin(ctx, m.spec)
	}
}

// reopen lets the cluster be read again if it has been cut off.
func (m *member) reopen() {
	if !m.cutOff.until.IsZero() {
		m.cutOff.until = time.Time{}
		m.quota.reopen()
	}
}
