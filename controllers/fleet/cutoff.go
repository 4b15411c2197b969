package fleet

import "time"

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
func (o *cutOff) override(a assessment) assessment {
	switch {
	case o.exceeded == "" || a.reachability == OverBudget:
	case a.reachability == Connecting:
		return assessment{reachability: OverBudget, message: o.exceeded + "; it is being read again"}
	default:
		o.exceeded = ""
	}
	return a
}

// begin notes that the cluster is cut off. The pause starts from the minimum again when the cluster was current for as long as the last one.
func (o *cutOff) begin(exceeded string, state ClusterState, now time.Time) {
	if state.Reachable() && now.Sub(state.Since) >= o.pause {
		o.pause = 0
	}
	o.pause = min(max(2*o.pause, minCutOff), maxCutOff)
	o.exceeded, o.until = exceeded, now.Add(o.pause)
}
